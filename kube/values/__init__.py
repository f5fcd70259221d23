"""Single values of JSON objects that others wrote, read with care. Pure.

The one idea: a user may write anything into a pod. A value of the wrong type or size becomes a
`Problem` with its path, never an exception, so that one pass finds every problem.

This folder knows no kind of object and none of our labels; `kube.read` and `kube.hived` do. May be
imported by the rest of `kube` and by `webhook`; imports `policy.errors` alone.

    fields       An object whose fields are read one by one; problems are collected.
    objects      The same without problems: what is not as expected counts as missing.
    quantities   Kubernetes quantities that count whole things, such as `8`, `2k` and `8000m`.
    size_limits  How large things may be before they are a mistake.
    texts        What names and labels may look like, and how a bad value is shown.
"""
