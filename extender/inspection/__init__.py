"""Inspection: the HTTP APIs that show the extender's state, and the access to them.

Nothing here changes anything. The engine's views are read through `snapshots`, so that many readers
cost no more than one. Only `extender.app` and `extender.wiring` import this package, and
`extender.metrics`, which exports the census.

    routes        `/v1/…`: nodes, gangs, VCs, cells, waiting gangs, decisions
    gang_runs     the runs of a gang: workloads that name their gang alike
    json_views    the JSON of these routes
    node_views    the JSON of `/v1/nodes`
    limit_routes  what a user holds, and the limits that concern the user (`/v1/limits`)
    explainer     why a pod waits or where it runs
    waiting_view  every waiting gang: why it waits, since when, its place in the order
    queue/        `/v1/queue`: the order of waiting gangs, and why
    hived_routes  `/v1/inspect/…`: HiveD's inspection API, with HiveD's errors
    hived_views   the JSON of HiveD's inspection API
    openapi       the OpenAPI document
    snapshots     views of the cluster, shared by all readers
    census        counts of leaf cells and cells, for metrics
    leader_only   a replica that does not lead answers no inspection, and names the leader
    access        which callers an extender that serves TLS accepts
    tokens        checks of Kubernetes tokens, remembered for some seconds
"""
