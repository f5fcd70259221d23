"""The time machine: the past played again under other policies or hardware, with a virtual clock.

Pure: no IO, no clock, no randomness. It plays arrivals through the product's own rules, quotas,
planner and engine; events end in the order of a virtual clock. Reading logs and traces, and writing
reports, belongs to `cli.whatif`. Imports: `policy`, `extender.cells`, `extender.queue`.

admitted    Admission: rules and quotas decide by what the gangs of the play hold
alone       A VC alone with the cells that it was promised
capacity    How many nodes bring a wait below a goal: which numbers to try, and the answer
compare     Puts two runs of the same arrivals side by side
comparison  What two runs say, side by side: the input of every report
courses     What has happened to each arrival so far
figures     Figures over time: use, fragments, starvation
model       Arrivals, the world that they meet, and how each gang fared
planned     Placing: the product's planner and engine, with a twin of the shell around them
play        One run: arrivals meet a world, in the order of a virtual clock
sides       What one run says in tables, and how two runs differ
tuning      Search for a better Queues document
worlds      Builds worlds: from policy documents and nodes, with added hardware
"""
