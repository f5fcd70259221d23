"""Forecasts measured on a trace of jobs: programs of their own, the path of the trace is given.

A trace is a CSV file with the columns timestamp, duration, num_gpus and cluster, as the Philly
trace has been published in; what it does not have (user, name, image) is left out of the keys.

    expected_start  `python -m bench starts`: expected starts against outcomes
    predicted_queue  the planner on a trace, and what is predicted about its starts
    jobs            the jobs of a trace
    pieces          the longest piece in which a sampled future blocks the leader
    run_times       the error of forecast run times, and what their intervals cover
"""
