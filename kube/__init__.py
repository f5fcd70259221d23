"""Everything that knows Kubernetes: its objects, its API, its watches.

`pods` and its siblings are pure: they turn Kubernetes objects into our own types. `client` and
`feed` are the only modules that speak to an API server. Nothing here decides anything.

    marks    Every name that we read or write on Kubernetes objects, in one place.
    api/     Every request to an API server: list, watch, patch, bind, evict, Events, leadership.
    follow/  Live copies of one kind of object each, in our own types.
    hived/   HiveD's annotations and its YAML. Pure.
    read/    Kubernetes objects translated into our own types. Pure.
"""
