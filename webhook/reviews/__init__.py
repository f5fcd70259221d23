"""Reviews: one class per kind of object that the API server has reviewed before it is stored.

A review reads the object, identifies the submitter, has `webhook.admission` decide, and builds the
response. No module here charges, applies rules or words a decision. Imported by `webhook.wiring`
only.

    pod_reviews        new pods: decide the class, charge, record, write the decision into the pod
    pod_workloads      the workload of a new pod, by its owners, and whether its gang has one
    unknown_marks      labels and annotations of ours that are misspelt: warnings
    young_namespaces   reads namespaces that were created a moment ago
    group_search       finds the PodGroup of a pod: in memory, or at the API server
    rollouts           Deployments and StatefulSets whose gang is never complete, or never updated
    live_members       refuses a pod of a running gang that already has all its members
    template_reviews   Jobs and other workloads: stamp the submitter, preview the decision
    preemption_advice  what the preemption of a Job costs, and what to add to it
    user_requests      what users do to gangs that exist: holds, swaps, deletions
    pod_templates      pod templates inside other objects, and the submitter's stamp on them
    pod_group_reviews  new PodGroups: decide the class that their pods must have
    policy_reviews     policy ConfigMaps: is the policy valid, and may this user change it
"""
