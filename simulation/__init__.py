"""A small simulated Kubernetes that the unmodified services talk to over HTTP.

It is a twin, not a product: the subset of the API that Cellgate uses, with the real shapes, codes
and order of admission, so that `cellgate run` has something to show without a cluster and tests are
fast. What is not simulated is refused (404, 405, 415, 501), never pretended. The contract suite in
`tests/contract/kube_api.py` runs on this twin and on a real API server.

Not simulated, beside what each module says: authorisation, dry runs, server-side apply, discovery
and OpenAPI, finalizers and owner references, deletion of collections and of namespaces, eviction,
scheduler and kubelet events, node failures. `events` of the two groups are two collections.

It imports neither `extender` nor `webhook`: it calls their HTTP routes.

    cluster         A whole simulated cluster: nodes, classes, namespaces, policies, and the …
    extender_calls  The calls that kube-scheduler makes to an extender: names only, one second, …
    kubelet         All kubelets of the simulated cluster: bound pods run for their time, …
    scheduler       The part of kube-scheduler: one pod at a time, the most important first.
    users           The people: they submit gangs through the API, as themselves, and keep the …
    admission/      What a write passes before it is stored: defaults, webhooks, checks.
    api/            The simulated API server: storage, verbs, watches, HTTP.
"""
