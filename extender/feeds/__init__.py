"""Feeds: pods, nodes and documents as Kubernetes reports them, translated for the engine.

Each sink takes the objects of one feed, and tells `extender.cluster` what changed. Nothing here
decides, and nothing here writes to Kubernetes. An object that is not valid never stops a feed. All
other packages of the extender may import this one, except the pure ones (`cells`, `queue`). The
sinks that both services use are in `kube.follow`.

    pod_feed           managed pods by UID and gang; passes bound and ended pods on to the engine
    node_feed          nodes; passes cells on to the engine, the rest to the choice of nodes
    pod_needs         what a waiting pod needs of its node beside leaf cells
    room_feed          what all pods request, for the room on nodes beside leaf cells
    finished_members   members of gangs that have succeeded and will not be replaced
    helper_pods        members of gangs that ask for no leaf cells
    mixed_gangs        members without the mark of their workload beside members that have it
    invalid_pods       pods that are not valid, and the devices that they use
    workload_pods      pods by the workload that controls them, and since when that asks
    own_failures       nodes on which members of a workload failed at start: retries avoid them
    effective_classes  the classes of gangs that were raised
    used_alternatives  the alternatives by which gangs are placed
    requests           a pod translated into a request to the engine
    charges            a pod translated into what the ledger charges its gang
    topology           the cells that the Cluster document in force describes
    cluster_file       the file of `--cluster`, followed instead of a ConfigMap
"""
