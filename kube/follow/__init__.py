"""Live copies of objects: each sink takes the objects of a feed and keeps what we read of them.

Both services use these sinks, so that both see the same. What only the extender follows (pods,
nodes) is in `extender.feeds`. Nothing here decides or writes to Kubernetes, except Events about
invalid policy documents. `extender`, `webhook` and `cli` may import this package.

    policies          policy documents in ConfigMaps: the policy in force, and its problems
    owners            the topmost controller of a pod, by its owner chain
    disruption_budgets  PodDisruptionBudgets: how many pods of a service may be ended
    pod_groups        PodGroups of every kind that the cluster has, found by discovery
    volumes           the nodes on which the volumes of claims can be used
    namespaces        the VC that a namespace gives to its pods
    priority_classes  the values of PriorityClasses
"""
