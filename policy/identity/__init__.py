"""Groups of users, access to VCs, and which users may change which document.

The one idea: groups come from the API server and from the Identity document together, and a name
written on a pod counts only if a trusted controller sent the pod. How this is written is in
`policy.documents.identity_document`.

May be imported by `policy` and by every package above it.

    identity   Groups of users, access to VCs, trusted controllers, kinds with pod templates.
    ownership  Which users may change which policy document.
"""
