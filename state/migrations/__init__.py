"""The schema, as the sum of these files; a package only so that they are installed with us.

`NNNN_pre_name.sql` is applied before the code that needs it runs, and older code must still work
with it. `NNNN_post_name.sql` is applied when no older code runs any more. A file that was released
is never edited: `state/database/migrator.py` refuses a database to which another version of it was
applied.
"""
