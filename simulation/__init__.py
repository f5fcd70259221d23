"""A small simulated Kubernetes that the unmodified services talk to over HTTP.

It is a twin, not a product: the subset of the API that Cellgate uses, with the real shapes, codes
and order of admission, so that `cellgate run` has something to show without a cluster and tests are
fast. What is not simulated is refused (404, 405, 415, 501), never pretended. The contract suite in
`tests/contract/kube_api.py` runs on this twin and on a real API server.

    resources, status, objects      what is served, how it is refused, small helpers
    store, selectors, watch         objects in memory, one revision counter, a bounded history
    patch, pods, priority, checks   how objects may change, and the rules of the kinds that matter
    review, webhooks, admission     what a write goes through before it is stored
    verbs, apiserver, identity      create, update, delete, bind; the HTTP side; who asks
    scheduler, extender_calls       the part of kube-scheduler
    kubelet, users, cluster         the nodes, the people, and everything put together

Not simulated, beside what each module says: authorisation, dry runs, server-side apply, discovery
and OpenAPI, finalizers and owner references, deletion of collections and of namespaces, eviction,
scheduler and kubelet events, node failures. `events` of the two groups are two collections.

It imports neither `extender` nor `webhook`: it calls their HTTP routes.
"""
