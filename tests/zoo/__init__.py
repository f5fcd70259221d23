"""Workloads of every kind at random, on a real control plane: `python -m tests.zoo --minutes 30`.

Users create workloads and change them, an operator creates pods for kinds of its own, pods fail,
nodes are drained and deleted, and Cellgate's processes are killed, all from one seed. An observer
that knows only the API server, the inspection API and the ledger checks what users are promised:
nothing hangs that has room, no gang runs by half, no charge or lease is left, no Job fails because
its pods were preempted, and no node holds more devices than it has.

    __main__         the command
    run              one run: installation, arrivals, disturbances, the end, the report
    surroundings     the control plane, Cellgate on it, policies, nodes, kinds, users
    snapshots        what the API server has, read twice a second
    workloads        a workload: its objects, and when it is finished
    builtin_kinds    workloads of Kubernetes' own kinds
    operated_kinds   workloads of kinds whose pods an operator creates
    stand_in         that operator
    lives            the life of one workload: created, followed, removed
    disturbances     failing pods, drained and deleted nodes, killed processes
    observer         the checks while the zoo runs
    gang_watch       how long each gang runs by half
    leftovers        the checks at the end
    report           what was counted
"""
