"""The lives of pods: times, ends and limits, from their status. Pure.

For the history of runs, and for what is expected of runs. Imports `kube.values` and `policy`.

    pod_holds   holds of gangs, as annotations of pods
    pod_lives   reads `PodLife` from a pod
    pod_swaps   swaps of places in the queue, as annotations of pods
    run_limits  the owner's estimate of a run time, the cost of a preemption, a workload's deadline
    start_wishes  when owners wish their gangs to start
"""
