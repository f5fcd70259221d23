"""The schema of the database, as a sequence of SQL files; a package so that they are installed.

`NNNN_pre_name.sql` is applied before the release that needs it starts, and the previous release
must still work with it. `NNNN_post_name.sql` is applied once no older release runs. A released file
is never edited: `state.database.migrator` refuses a database that has another version of it.
"""
