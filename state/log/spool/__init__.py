"""Rows that wait on disk while Postgres is unavailable, and rows that must survive a `kill -9`.

Used by `state.log.log`, and opened by `cli`. The spool is bounded, and lost rows are counted. Only
`record_spool` knows records; the other modules handle bytes.

record_spool  records in the spool and in the mirror, with file IO in a thread
spool         a bounded queue of payloads on disk
mirror        a ring buffer in a mapped file, for records that are only in memory
loss_counter  counts records that a killed process lost
frames        payloads in a file, each with its length and checksum
"""
