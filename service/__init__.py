"""What every Cellgate process has, whichever job it does: logs, health, supervised background
tasks, an HTTP server that drains, metrics, and a clean end on SIGTERM.

Nothing here knows pods, policies or cells. There is no global state: two services can live in one
process (`cellgate run`) and a test can build as many as it likes.

    bodies      Request bodies: JSON from a caller into a model, or every problem with it.
    clock       The two clocks a shell needs, in one place, so that a test can hold them.
    garbage     Python's garbage collector: one policy for every process.
    memory      Bounded memories: maps that hold so many entries, and if wanted for so long.
    health      Is this process alive, is it ready? One object per service, read by `/healthz` …
    http        The HTTP side of a service: probes, metrics, bounded bodies, and a server that …
    logs        JSON logs: a constant message, the values beside it as fields.
    metrics     Metrics that every service has. Names: prefix `cellgate_`, base units, labels of …
    pages       Long lists, a page at a time: `?limit=100&after=KEY`.
    process     From the command line to a running event loop, and back to the shell with an …
    running     One running service: listening from the first moment, ready later, drained at …
    settings    Settings that every service shares, checked when they are read.
    tasks       Background tasks that nobody awaits, and yet nobody forgets.
"""
