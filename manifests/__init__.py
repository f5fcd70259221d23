"""Kubernetes manifests: `base` is what an installation needs, `examples` is what admins begin with.

A package only so that they are shipped with the code: `cellgate run` gives its simulated cluster
the very documents that an admin applies to a real one.
"""
