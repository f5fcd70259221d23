"""Everything that knows Kubernetes: its objects, its API, its watches.

`pods` and its siblings are pure: they turn Kubernetes objects into our own types. `client` and
`feed` are the only modules that speak to an API server. Nothing here decides anything.
"""
