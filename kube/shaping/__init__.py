"""Shaping: fields that the Shaping document sets on pods. Pure.

Which shapes match a pod is decided in `policy.shaping`; here they are applied, and protected from
later changes. Imported by `kube.admission`, `webhook` and `extender`.

    shaper         applies shapes to a pod: node selector, tolerations, requests, mounts, run time
    shaped_fields  refuses changes of an existing pod that would undo a shape
"""
