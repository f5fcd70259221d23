"""Kubernetes objects translated into our own types. Pure.

The one idea: both services read an object with the same function, so that they agree on what it
means. `pods.read_pod` is the one reader of pods. Nothing here sends a request or keeps state.

May be imported by `kube.api`, `kube.follow` and by every package above `kube`.

    gangs            Which gang a pod belongs to, by any of the seven forms that we know.
    label_selectors  Label selectors: which labels they select.
    late_members     Members that a workload creates only after others are Ready.
    leaf_demand      How many leaf cells a pod asks for, counted as Kubernetes counts requests.
    managed_pod      `ManagedPod`: all that we know of a pod, and what its gang is charged as.
    node_choice      Which nodes a pod may use, by its selector, affinity and tolerations.
    nodes            Which devices a node has, of which type, and whether it may be used.
    pod_groups       PodGroups of Kubernetes, the coscheduling plugin and Volcano: sizes of gangs.
    pod_resources    What pods request beside leaf cells, and what nodes offer.
    pods             Reads a pod: `read_pod`. Which pods are never ended to make room.
    refusals         Why kube-scheduler refused a pod, by the message of its condition.
    start_failures   Members that failed soon after their start, from the status of their pods.
    submitters       The user and groups that the template webhook stamps on a pod template.
    suspension       Workloads that can be suspended: kinds, obstacles, the mark of a reclaim.
    trimming         Drops what we never read of pods and nodes, to save memory.
    workloads        The topmost controller of a pod, and the mark that names it on the pod.
"""
