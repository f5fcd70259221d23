"""What every Cellgate process has: logs, health, background tasks, HTTP, metrics, a clean end.

Nothing here knows pods, policies or cells. There is no global state: two services can run in one
process (`cellgate run`), and a test can build as many as it needs. `extender`, `webhook`, `cli` and
`simulation` may import this package; `kube` only `clock` and `memory`, which have no effect of
their own. It imports `policy` for its errors.

    runner      the HTTP server of one service: listens first, is ready later, drained at the end
    process     from the command line to a running event loop, and back to an exit code
    exit_codes  the exit codes of commands
    settings    settings that every service has
    health      whether the process is alive and ready, for `/healthz` and `/readyz`
    tasks       background tasks: one that ends by itself is a fault
    http        the HTTP application: probes, metrics, bounded bodies, errors as JSON
    slow_connections  closes connections whose first request does not arrive in time
    bodies      request bodies: JSON checked against a model
    pagination  long lists, one page at a time
    logs        JSON logs: a constant message, and the values as fields
    metrics     metrics that every service has
    clock       the clock of a process, injected wherever time matters
    memory      bounded memories: maps that hold so many entries, and if wanted for so long
    garbage     Python's garbage collector: one policy for every process
"""
