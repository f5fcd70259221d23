"""The name under which a pod's gang is charged: the webhook and the extender derive the same one.

A pod that Kubernetes will name (`generateName`) has no name when it is admitted. As a gang of one
it is charged under that prefix, a `*`, which no name contains, and the id of the decision, which
the pod then carries as an annotation. A pod of a PodGroup that is no gang is charged as a gang of
one; an annotation says so.
"""

from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from policy.submission import GangKey


def charged_gang(pod: ManagedPod, *, decision: str | None = None) -> GangKey:
    """Return the key of a pod's charge; `decision` while the pod does not carry it yet."""
    decision = decision or pod.decision
    if not _is_single(pod):
        return pod.gang.key
    if pod.generate_name and decision:
        return GangKey(pod.namespace, f"{pod.generate_name}*{decision}")
    return GangKey(pod.namespace, pod.name) if pod.is_charged_alone else pod.gang.key


def _is_single(pod: ManagedPod) -> bool:
    is_lone_hived = pod.gang.form is GangForm.HIVED and (pod.hived is None or not pod.hived.gang)
    return pod.gang.form is GangForm.SINGLE or is_lone_hived or pod.is_charged_alone
