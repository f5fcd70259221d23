"""Shaping: fields that the Shaping document sets on pods. Pure.

Which shapes match a pod is decided in `policy.shaping`; here they are applied, and protected from
later changes. Imported by `kube.admission`, `webhook` and `extender`.

    shaper            applies shapes to a pod
    spec_draft        a pod's spec while it is shaped, and what is told about it
    pod_fields        fields of the pod: nodes, tolerations, secrets, account, run time
    amounts           what containers request; leaf cells, which are fixed before the charge
    container_fields  fields of containers: variables, command, working directory, mounts
    shaped_fields     refuses changes of an existing pod that would undo a shape
"""
