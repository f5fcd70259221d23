"""A small simulated Kubernetes cluster, for `cellgate run` without a cluster and for fast tests.

The unmodified services call it over HTTP. It serves the part of the API that Cellgate uses, with
the real objects, status codes and order of admission. Requests that are not simulated are refused
(404, 405, 415, 501). The contract suite in `tests/contract` runs on it and on a real API server.

Not simulated, in addition to what the modules list: authorization, dry runs of deletions and
bindings, server-side apply, OpenAPI, finalizers and owner references, deletion of collections and
of namespaces, eviction, Events of the scheduler and the kubelet, node failures. `events` of the two
API groups are two collections.

May import `policy` and `service`; never `extender` or `webhook`, which it calls over HTTP. `cli`
and tests import it.

cluster         a cluster: nodes, classes, namespaces, policies, users
scheduler       kube-scheduler
extender_calls  the calls of kube-scheduler to an extender
kubelet         all kubelets: bound pods run for their time, deleted pods end
users           users that submit gangs through the API
api/            the API server: verbs, watches, HTTP
admission/      the admission of writes: defaults, priority, webhooks, checks
objects/        storage, and the rules of single kinds
"""
