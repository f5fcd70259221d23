"""Kubernetes manifests: `base` is an installation, `examples` are policy documents to start with.

A package only so that they ship with the code: `cellgate run` gives its simulated cluster the same
documents that an admin applies to a real one.
"""
