"""Cellgate installed on a real control plane, and what its users do there.

May be imported by `tests.e2e`, `tests.chaos`, `tests.zoo` and `bench.controlplane`. The control
plane itself is `tests.controlplane`, which knows nothing of Cellgate.

    installation   our manifests applied, our services as processes with their own accounts
    extender_only  an extender with a cluster file and its kube-scheduler, without webhook
    leaders        two extenders, of which one leads: find it, depose it
    gangs          gangs: create them, wait for them, end them, check them
    jobs           Jobs of users, and how to run one again
    gang_stream    gangs that are created, run and end all the time
    database_faults  the database hangs, or its processes are killed
    pod_load       pods created at a steady rate, and what became of each
    patience       requests to an API server that fails meanwhile
    replays        the log that was written, decided again
    policies       policy documents, Jobs and pods of users
"""
