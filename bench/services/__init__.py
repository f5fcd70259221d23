"""Benchmarks of the two services as processes, called as Kubernetes calls them.

The API server is simulated. A process that does nothing is measured beside each service where the
transport would hide the difference.

    extender       filter calls, repeated refusals, start-up and memory of the extender
    webhook        reviews per second of the webhook over TLS, with Postgres
    http_load      an HTTP client that costs little, so that the server is measured
    lone_extender  the extender without a database, as a program
    do_nothing     an extender that passes every node, as a program
"""
