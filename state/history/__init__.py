"""The history of gangs: one row for each run, with what was requested, granted and used.

Rows are written with the decision log (`state.log`), never by this package. Facts about a run come
from several services, in any order and more than once.

The one idea: facts are merged by a rule for which order and repetition do not matter. The rule
exists twice, as `facts.merge` and as the SQL query `merge_gang_history`; a contract test compares
them.

facts   facts about a run, and how they are merged
runs    queries about runs, in Postgres
"""
