"""The lives of pods: times, ends and limits, from their status. Pure.

For the history of runs. Imported by `extender.history`; imports `kube.values` and `policy`.

    pod_lives  reads `PodLife` from a pod
"""
