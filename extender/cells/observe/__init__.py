"""Events of the cluster, taken into the state: pods that run or end, nodes, new topologies.

`engine` uses this package, and `decide` uses `lifecycle`. What is observed is a fact: it is never
refused, and what the engine only planned (leases, reservations) gives way to it. Nothing is planned
here.

Where to look:

    a pod is bound, or found running after a restart   bound_pods, then counted_leaves and claims
    a pod is ending, ended or was deleted              lifecycle
    a lease expires                                    lifecycle
    a node joins, gets unhealthy or disappears         nodes, if no topology document lists nodes
                                                       one by one; what becomes of leases on it is
                                                       in `PodObserver.unseat_node` (bound_pods)
    a node joins or leaves a derived topology          node_changes
    a new topology, or other priorities                adoption; the report is in reconfiguration

    adoption         Takes gangs over: after a restart, or on a new topology
    bound_pods       Bound pods become members of gangs, at the expense of leases if necessary
    claims           Finds the preassigned cell that running members count against
    counted_leaves   Chooses the leaves on which a running pod is counted
    lifecycle        The states of a gang, from its first decision to the end of its last member
    node_changes     Nodes join or leave a topology: only the gangs on them are taken over again
    nodes            Nodes join, change their health or leave
    reconfiguration  What a new topology did to each gang, in words for its owner
"""
