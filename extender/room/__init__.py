"""Room on nodes beside leaf cells: CPU, memory, storage, pods, ports, distance. Pure.

The planner places gangs before kube-scheduler sees their pods, and must not choose a node that
kube-scheduler would refuse. So the room on each node is counted here as kube-scheduler counts it:
from all pods that are bound, managed or not, and from members that have a lease. Leaf cells are not
counted here but in `extender.cells`. Which gang is planned is decided in `extender.queue`, which
asks `FittingNodes` through `queue.ports.Nodes`. Nothing here reads Kubernetes objects:
`extender.feeds` reports them. Imports: `policy`.

cluster_room   Pods and members on nodes, and the nodes that have changed
fitting_nodes  The nodes that each need fits, kept up to date
node_room      One node: what it offers, what its pods use
"""
