"""Strategies of the queue on a trace, and what events cost while many gangs wait.

A trace is played through the product's planner and engine by `timemachine`. Traces are given
by path and are no part of the project; without one a generated workload stands in, and the results
say so. Imports of tests: `tests.support.queue`.

events   The cost of adding a gang and of one event while 10,000 gangs wait
figures  Waits and costs of a replay
measure  The benchmark: all cases, several at once, resumable
options  Command line options
queues   The queues that are compared: the planner, and strict first in, first out
replay   Plays a trace through a queue
run_times  Run times predicted from the runs of the trace's VC
sharing  Whether a VC is worse off in a common cluster than alone
shape    Gangs and clusters: flat, whole nodes, VCs
strategies  The strategies that are compared
what_if  What a what-if of one day of a large cluster costs
trace    Gangs with their submission and run time: read, generated, shaken
"""
