"""What follows from a decision: Events, metrics, the list of what waits, victims that end.

The planner, the verbs and the background work report here, and nowhere else, what was decided. So
`/v1/waiting`, metrics, Events and explanations always agree. Nothing here decides: `cells` and
`queue` choose where a gang goes. Imported by `planning`, `verbs`, `upkeep`, `inspection` and the
wiring; imports none of them.

evictions     Ends the pods of victims: retries, spares pods that need not end, writes an Event.
gang_ends     Gangs that were ended: reported to their workload, the log and explanations.
outcomes      Reports every decision to Events, metrics and the waiting list.
pod_events    Events on pods (Waiting, Placed, Downgraded, Preempted) and on workloads.
reclaims      Gentle ends: the workload of victims is suspended, and resumed once they are gone.
refused_nodes  Counts how often kube-scheduler refuses the node that is planned for a pod.
waiting_list  Gangs and pods that wait: for which reason, and since when.
waiting_notes  Says on gated pods and their workloads why they wait: conditions and Events.
"""
