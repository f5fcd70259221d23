"""Under which name a pod's gang is charged, the same for whoever admits it and whoever sees it run.

A pod that Kubernetes will name (`generateName`) has no name when it is admitted. As a gang of one
it is charged by that prefix, a `*`, which no name has, and the id of the decision, which the pod
then carries as an annotation.
"""

from kube.gangs import GangForm
from kube.pods import ManagedPod
from policy.submission import GangKey


def charged_gang(pod: ManagedPod, *, decision: str | None = None) -> GangKey:
    """Return the key of a pod's charge; `decision` while the pod does not carry it yet."""
    decision = decision or pod.decision
    is_single = pod.gang.form is GangForm.SINGLE or (
        pod.gang.form is GangForm.HIVED and pod.hived is not None and pod.hived.gang is None
    )
    if not is_single or not pod.generate_name or not decision:
        return pod.gang.key
    return GangKey(pod.namespace, f"{pod.generate_name}*{decision}")
