"""What every Cellgate process has, whichever job it does: logs, health, supervised background
tasks, an HTTP server that drains, metrics, and a clean end on SIGTERM.

Nothing here knows pods, policies or cells. There is no global state: two services can live in one
process (`cellgate run`) and a test can build as many as it likes.
"""
