"""The guard: what may change on a pod after its class was decided, and which users may bind it.

The validating reviews of pods and Bindings. The guard only compares and refuses: it never decides,
charges or patches. What shapes protect is in `kube.shaping.shaped_fields`. Imported by
`webhook.wiring` only.

    pod_guard      pods: a new one must match its decision; later only Cellgate changes its marks
    binding_guard  Bindings: only the extender and known schedulers bind managed pods
    gang_roles     As what a user may change a gang: owner, admin of its group, policy admin
    hold_guard     Holds of gangs: which users may set and lift them
    swap_guard     Swaps of two gangs: which users may ask for them
    user_marks     The annotations that users change themselves
    node_guard     New pods that name their node: by the same users, or mirror pods by a kubelet
"""
