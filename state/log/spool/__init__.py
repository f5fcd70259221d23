"""Rows that wait on disk while Postgres is unavailable, and rows that must survive a `kill -9`.

Used by `state.log.log` only. The spool is bounded; what does not fit is counted as lost.

record_spool  records to and from the spool, with file IO in a thread
spool         a bounded queue of bytes on disk
mirror        records that are in memory only, kept in a file that is mapped into memory
loss_counter  counts records that were appended and not yet acknowledged
codec         records as bytes
frames        records in a file, each with its length and checksum
"""
