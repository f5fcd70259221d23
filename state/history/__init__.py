"""The history of gangs: one row for each run, with what was requested, granted and used.

The extender's leader describes runs (`extender.upkeep.run_recorder`). Descriptions are written with
the decision log (`state.log`), so that they wait in its spool while Postgres is unavailable; no
module of this package writes them.

The one idea: descriptions are merged by a rule for which order and repetition do not matter. The
rule exists twice, in `facts` and in SQL; a contract test compares them.

facts        facts about a run, and how they are merged
predictions  past runs that predictions are made from, and the errors of predictions
runs         queries about runs, in Postgres
"""
