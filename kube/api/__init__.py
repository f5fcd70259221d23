"""Requests to an API server: list, watch, patch, bind, evict, Events and leadership.

The one idea: every write names what it was decided on (a uid, a resource version, an epoch), so
that a write that comes too late fails instead of doing harm. Library errors become `KubeError`
here. What is written is decided by `extender` and `webhook`.

May be imported by `kube.follow` and by every package above `kube`.

    binder                  Binds a pod: writes its node and placement annotations in one request.
    client                  A thin client of the Kubernetes API: JSON in, JSON out.
    config_maps             Writes files that all users may read.
    elastic_jobs            Finds suspended elastic Jobs, and resumes them with one of their sizes.
    events                  Writes Events in the background.
    feed                    A live copy of one kind of object, by list and watch.
    leadership              Leader election by a Kubernetes Lease; the label of the leader's pod.
    node_writer             Marks a node that no gang may use for a while.
    pod_ender               Ends a preempted pod gracefully, with a DisruptionTarget condition.
    pod_writer              Releases a pod: nominates a node, writes the placement, lifts the gate.
    provisioning_requests   Asks the Cluster Autoscaler for the nodes of a whole gang.
    secrets                 Reads Secrets, and writes them if they have not changed.
    suspender               Suspends and resumes a preempted workload, with a mark that says why.
    token_reviews           Asks the API server whose token it is and what the user may do.
    webhook_configurations  Publishes our CA in the webhook configurations.
"""
