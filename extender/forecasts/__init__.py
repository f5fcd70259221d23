"""Forecasts of the leader: how long gangs run, and when waiting gangs start.

The shell around `extender.queue.forecast`: it reads past runs from the history when a leadership
term begins, follows runs as they are recorded, and answers the planner's questions from memory.
Nothing waits for it: until the history has been read, or without one, nothing is known. Predictions
are recorded with the run, so that each is compared with its outcome exactly once.

Imported by `extender.wiring` and `extender.app`.

    forecast_loop    learns from the history, then predicts for waiting gangs, again and again
    outlooks         when gangs that are submitted now would start, written for webhooks
    past_runs        reads past runs, and teaches them in the order in which they happened
    queue_copy       a light copy of the queue
    queue_view       the order of waiting gangs and what is reserved, from the planner
    run_forecasts    the run times of gangs that wait and run, and their predictions
    run_keys         by what runs are compared
    start_forecasts  the expected starts of waiting gangs
    submitted_gang   the expected start of a gang that does not exist
    window_closures  windows of the Queues document as leaf cells that pools lack for a time
"""
