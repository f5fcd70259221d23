"""Live copies of one kind of object each, in our own types.

namespaces        Labels of namespaces: they name the VC of pods that name none.
pod_groups        PodGroups of every kind that the cluster has, found by discovery.
policies          Policy documents in their ConfigMaps: from Kubernetes' JSON to the policy …
priority_classes  PriorityClasses: the values that Kubernetes gives to our classes.
"""
