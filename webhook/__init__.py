"""The API-server side: at which class a pod may run.

What decides is in `policy`; here is what identifies, charges, answers and remembers.

    app             Runs the webhook: feeds, reviews, certificates, routes.
    cluster_view    What the webhook knows of the cluster, from memory: each kind followed by a …
    metrics         What is measured of the webhook, beside what every service measures.
    routes          The webhook over HTTP: one route for each kind of review.
    settings        How one webhook runs.
    wire            The words of AdmissionReview v1: what the API server asks, and how it is …
    wiring          All kinds of reviews, put together over one view of the cluster and one …
    admission/      One decision per gang: rules, quotas, the charge, growth.
    certificates/   The serving certificates of the webhook, and their renewal by the leader.
    reviews/        One module per kind of AdmissionReview, and what they answer with.
    shaping/        Policy-defined fields of pods: node selectors, tolerations, resources, mounts.
"""
