"""Live copies of one kind of object each, in our own types.

gang_sizes        PodGroup objects, followed: how many members a gang needs, where its pods …
namespaces        Labels of namespaces: they name the VC of pods that name none.
policies          Policy documents in their ConfigMaps: from Kubernetes' JSON to the policy …
priority_classes  PriorityClasses: the values that Kubernetes gives to our classes.
"""
