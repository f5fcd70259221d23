"""Forecasts: how long gangs run, and when waiting gangs start. Pure: no IO, no clock.

A forecast never decides who may run; it orders gangs, lets short gangs use gaps, and tells owners
when to expect what. Reading history and recording outcomes do not belong here. Imports: `policy`
and `extender.cells`.

calibration  How far forecasts were off, and the intervals that follow
draws        Run times for sampled futures, from those of ended runs
copied_gangs  Gangs as futures see them
closures     Leaf cells that gangs may not use for a time
expectation  What is expected of one gang: history, the owner's estimate, limits
future_lines  Waiting gangs of one pool in a future, by what lets them start
futures      Sampled futures of a light copy of the queue
keys         By what a run is compared with earlier ones
model        RunTime: how long a gang is expected to run, and how far that is known
run_times    RunTimeBook: forecasts from ended runs
starts       Expected starts, calibrated by outcomes
run_time_windows  The last run times of one key
"""
