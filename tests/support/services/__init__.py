"""The services running in this process or as a child process, beside a simulated cluster.

simulated_cluster  a simulated cluster, served, with a client
extender           an extender, called as kube-scheduler calls it
commands           `cellgate webhook` and `cellgate extender` in this process
cellgate_run       `cellgate run` as a child process
"""
