"""A small simulated Kubernetes that the unmodified services talk to over HTTP.

It serves the subset of the API that Cellgate uses, with the real shapes, codes and order of
admission, so that `cellgate run` works without a cluster and tests are fast. What is not
simulated is refused (404, 405, 415, 501). The contract suite in `tests/contract/kube_api.py` runs
on this twin and on a real API server.

Not simulated, beside what each module says: authorization, dry runs, server-side apply, OpenAPI,
finalizers and owner references, deletion of collections and of namespaces, eviction, Events of the
scheduler and the kubelet, node failures. `events` of the two API groups are two collections.

May import `policy`, `kube` and `service`; never `extender` or `webhook`, whose HTTP routes it
calls.

cluster         a whole simulated cluster: nodes, classes, namespaces, policies, users
scheduler       the part of kube-scheduler
extender_calls  kube-scheduler's calls to an extender
kubelet         all kubelets: bound pods run for their time, deleted pods end
users           users who submit gangs through the API
api/            the API server: verbs, watches, HTTP
admission/      what a write passes before it is stored
objects/        storage and the rules of single kinds
"""
