"""The history of gangs: one row per run, with what was asked, granted and used.

Facts about a run arrive from several services, in any order and more than once. `facts.merge` is
the rule by which they are merged; the SQL query `merge_gang_history` follows the same rule.

facts   what is known of a run, and how facts are merged
runs    questions about runs, answered from Postgres
memory  the same answers from memory, for tests
"""
