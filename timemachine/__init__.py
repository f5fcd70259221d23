"""The time machine: the past played again under other policies or hardware, with a virtual clock.

Pure: no IO, no clock, no randomness. It plays arrivals through the product's own rules, quotas,
planner and engine; events end in the order of a virtual clock. Reading logs and traces, and writing
reports, belongs to `cli.whatif`. Imports: `policy`, `extender.cells`, `extender.queue`.

capacity    How many nodes bring a wait below a goal: which numbers to try, and the answer
comparison  What two runs of the same arrivals say, side by side: the input of every report
model       Arrivals, the world that they meet, and how each gang fared
"""
