"""Measurements of Cellgate on a real Kubernetes control plane: `python -m bench.controlplane.NAME`.

Each module with a command line is a program of its own that runs for minutes and prints its
results; none has a budget. `make e2e` builds the control plane that they need.

    creation_latency  what the webhook adds to the creation of a pod
    pod_throughput    pods per second, compared with an extender that does nothing
    gang_throughput   gangs per second, compared with kube-scheduler alone
    hold_cost         what it costs that the members of a gang are bound together
    gang_waiting      the cost of gangs that do not fit, and the time until the next one is released
    takeovers         leadership taken away many times under load
    gang_load         gangs, and control planes that schedule them in one of five ways
    idle_hooks        a webhook that allows everything, as a program
    unheld_extender   an extender that holds no bindings, as a program
"""
