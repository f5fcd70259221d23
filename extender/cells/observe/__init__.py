"""Events of the cluster, taken into the state: pods that run or end, nodes, new topologies.

`engine` uses this package, and `decide` uses `lifecycle`. What is observed is a fact: it is never
refused, and what is only planned (leases, reservations) gives way to it. Nothing is planned here.

Which module handles which event:

- a pod is bound, or was running before a restart: `bound_pods`, with `counted_leaves`;
- a pod is ending, has ended or was deleted, or a lease expires: `lifecycle`;
- a node joins, changes its health or disappears: `nodes`; if the topology is derived from live
  nodes, it changes, too: `node_changes`. Both say what happens to gangs that run or hold a lease on
  the node. A leased member that keeps its slot gets another place from the planner
  (`extender.queue.refused_places`);
- an admin changes the topology or the priorities: `adoption`; `reconfiguration` reports the result.

    adoption         Takes gangs over: after a restart, or on a new topology
    bound_pods       Bound pods become members of gangs, at the expense of leases if necessary
    counted_leaves   Chooses the leaves and the preassigned cell on which a running pod is counted
    lifecycle        The states of a gang, from its first decision to the end of its last member
    node_changes     Nodes join or leave a topology: only the gangs on them are taken over again
    nodes            Nodes join, change their health or leave
    reranking        Gangs get other priorities on the leaves that they hold
    reconfiguration  What a new topology, or other priorities, did to each gang
"""
