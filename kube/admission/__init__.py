"""A new pod as a request to rules and quotas: its submitter, VC, gang, the group that pays. Pure.

The one idea: a pod that the API server has reviewed and a pod that a user only asks about are read
in the same way. Imported by `webhook` and `extender`.

    pod_request  what a pod means for its gang: submitter, class, VC, the group that pays
    pod_shapes   which shapes apply to a pod; pods that get nothing but shapes
    submitter    which user submitted a pod, and which stamps are believed
    pod_groups   the PodGroup of a pod: the size and class of its gang
    alternatives  whether a submitter may use each alternative that a pod lists
    elastic_jobs  suspended Jobs that may start with several numbers of members
    possibility  what can never start: a warning, or a refusal by policy
    live_count   whether a running gang already has all its members

    decision_patch  the patch that writes a decision into a pod
    patches         the JSON patches of single fields of a pod, and their effect
    request_line    what a pod asked for, in one line on the pod, for the guard to compare
"""
