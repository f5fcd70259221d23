"""Runs of gangs: which pods are one run, from when until when, and how it ended. Pure.

The one idea: a run is a set of pods of one gang whose lives overlap. Which pods those are, and how
the run ended, follows from what the pods say about themselves; so a leader that takes over comes
to the same runs as the leader before it. The contract of `policy` holds here: no IO, no clock;
times come in as seconds since 1970.

Imported by `extender.history`, which feeds pods and records runs; imports `policy` only.

    model      a pod of a run, and the run that it belongs to
    endings    how a pod ended, and how its run ended
    run_book   assigns pods to runs, and tells which runs changed
    summaries  times, sizes and nodes of a run, from its pods
"""
