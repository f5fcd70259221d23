"""Strategies of the queue on a trace, and what events cost while many gangs wait.

A trace is replayed through the product's planner and engine with compressed time. Traces are given
by path and are no part of the project; without one a generated workload stands in, and the results
say so. Imports of tests: `tests.support.queue`.

cells    The engine as the planner uses it; members that have places run at once
events   The cost of adding a gang and of one event while 10,000 gangs wait
figures  Waits and costs of a replay
measure  The benchmark: all cases, several at once, resumable
options  Command line options
queues   The queues that are compared: the planner, and strict first in, first out
replay   The event loop: submissions and ends in order of time
run_times  Run times predicted from the runs of the trace that have ended
sharing  Whether a VC is worse off in a common cluster than alone
shape    Gangs and clusters: flat, whole nodes, VCs
strategies  The strategies that are compared
trace    Gangs with their submission and run time: read, generated, shaken
"""
