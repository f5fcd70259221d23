"""What follows from a decision: Events, metrics, the list of what waits, victims that end.

The planner, the verbs and the background work report here, and nowhere else, what was decided. So
`/v1/waiting`, metrics, Events and explanations always agree. Nothing here decides: where a gang
goes is the business of `cells` and `queue`. Imported by `planning`, `verbs`, `upkeep`,
`inspection` and the wiring; imports none of them.

evictions     The one executor that ends pods: retries, spares, one Event, one count.
outcomes      The one place that every decision passes.
pod_events    Events on pods: Waiting, Placed, Downgraded, Preempted.
waiting_list  Gangs and pods that wait: for which reason, and since when.
"""
