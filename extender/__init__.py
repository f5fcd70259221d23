"""The scheduler side: where a gang runs.

`cells` decides and is pure. Around it, from the inside outwards:

    cluster, members, journal, rows, replay    the one door to the engine, and its rows in the log
    requests, pods, policies, topology         what Kubernetes says, in the engine's words
    questions, outcomes, waiting, victims      what follows from a decision
    filtering, preempting, binding, routes     kube-scheduler's verbs
    recovery, halves, reconcile, bookkeeping, leases, waking   looked after while nobody asks
    inspection, showing, explaining, hived_*, snapshots, census, metrics, openapi   what people see
    parts, app                                 all of it put together
"""
