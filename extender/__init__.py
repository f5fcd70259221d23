"""The scheduler side: where a gang runs.

`cells` decides and is pure; everything else here is the shell around it: `wire` translates,
`service` keeps the one sequence plan → apply → log → answer, `routes` speaks HTTP, `app` puts the
parts together.
"""
