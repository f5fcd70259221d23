"""Benchmarks, from the core alone to a cluster; `python -m bench --help` lists the short ones.

A benchmark returns results; `budgets.yaml` holds the limits with their evidence. Limits compare
ratios within one run, because machines are noisy and ratios much less so. `bench` is no part of the
product: it may import every package of the product, `tests.controlplane` and `tests.support`; the
product and the tests import nothing from it.

    core/          the engine, rules and readers alone: no network, no database
    queue/         strategies of the queue on a trace, and events while many gangs wait
    services/      the webhook and the extender as processes, asked over HTTP
    state/         the ledger and the decision log on a real Postgres
    controlplane/  programs of their own: Cellgate on a real Kubernetes control plane
    forecasts/     programs of their own: forecasts on a trace of jobs
    report         measured values, as a table and as JSON
    budgets        compares results with `budgets.yaml`
    processes      the CPU and memory of a process, and how to start and ask one
"""
