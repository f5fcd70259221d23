"""A stretch of the decision log as one file: gzip, and in it JSON, one object on each line.

The first line is a header: format, version, which part of the log the file has. Then one line for
each row, with the documents that it refers to; the rows of epochs come first, by epoch and number.
The last line has the number of rows and a SHA-256 checksum of all lines before it. Both ways take a
few rows at a time, whatever the size of the file.

The one idea: a file is read twice. The first pass only checks it, so a file that is damaged or
incomplete changes nothing, however far into it the damage is.

lines     rows and the other lines as JSON, and back
writer    writes a file, complete or not at all
reader    checks a file and reads its rows
transfer  from the log to a file, and back
"""
