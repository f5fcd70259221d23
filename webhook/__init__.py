"""The admission webhook: in which class a pod may run, decided before the pod is stored.

The rules and quotas themselves are in `policy`; here pods are identified, decided, charged and
recorded, and the API server gets its response. Nothing here decides where a pod runs: that is
`extender`, and neither package imports the other. Only `cli` imports this one.

One decision per gang: its first pod is charged in the ledger before the response is sent, and
later members follow it. Each folder imports only folders below it in this list:

    reviews/        mutating reviews of pods, templates and PodGroups; reviews of policy documents
    guard/          what may change later on a pod, and which users may bind it
    policy_effects/  what a changed policy would have decided over the last day
    records/        the log row, metric and Event of a decision
    responses/      the response about a pod: the patch, warnings or a refusal
    admission/      decides the class of a gang and charges its quotas
    ledger_access/  the ledger within a review's time budget, and what happens without it
    certificates/   the webhook's serving certificates, and their renewal by the leader

    app             runs a webhook: feeds, reviews, certificates, routes
    wiring          builds all reviews from one view of the cluster and one ledger
    routes          HTTP: one route for each kind of review
    wire            AdmissionReview v1: request and response
    cluster_view    the policies and other objects that reviews read, kept current by feeds
    leaderless_pods  tells gated pods while no extender leads
    settings        the settings of one webhook process
    metrics         the webhook's own metrics
    quota_metrics   what groups hold of their quotas
"""
