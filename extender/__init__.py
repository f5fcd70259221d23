"""The scheduler extender: on which nodes and leaf cells a gang runs.

The decisions are made in `cells` (where a gang fits) and `queue` (which gang is next), which are
pure. Everything around them is here: pods and nodes come in through `feeds`, decisions go out
through `planning` and `verbs`, and only `cluster` calls the engine. Nothing here decides in which
class a pod may run: that is `webhook`, and neither package imports the other. Only `cli` imports
this one. One replica leads; the others follow the cluster and are ready to take over.
Each folder imports only those above it in this list.

    cells/       the cell engine: which leaf cells a gang gets; pure
    room/        room on nodes beside leaf cells: CPU, memory and the rest; pure
    runs/        which pods are one run of a gang, and how it ended; pure
    queue/       which waiting gang is planned next, and which actions follow; pure
    cluster/     the engine with its inputs and its log: the only way to the engine
    feeds/       pods, nodes and documents as Kubernetes reports them, translated for the engine
    outcomes/    what follows from a decision: Events, metrics, the waiting list, evictions
    planning/    the planner's loop, and its writes to Kubernetes
    verbs/       kube-scheduler's verbs: filter, prioritize, preempt, bind
    upkeep/      background work of the leader: recovery, reconciliation, leases, the ledger
    simulate/    what would happen to a pod that does not exist
    inspection/  the APIs that show the state, and the access to them
    history/     records the runs of gangs, and shows what is recorded
    forecasts/   how long gangs are expected to run, from the history

    app            runs an extender: feeds, routes, recovery, the leader's tasks
    wiring         builds the state of an extender
    calendar_wiring  builds what serves windows: their nodes, notices and listing
    verbs_wiring   builds what answers: the planner, verbs, explanations
    upkeep_wiring  builds the background work of its leader
    simulate_wiring  builds the simulation of pods that do not exist
    leader_role    whether this replica leads: only the leader answers verbs
    settings       the settings of one extender process
    defaults       defaults that the command line shows
    metrics        the extender's own metrics
"""
