"""Find the PodGroup of a pod: in memory, or at the API server if it is too new."""

from kube.api.client import KubeError
from kube.follow.pod_groups import PodGroupFollower
from kube.read.gangs import GangForm
from kube.read.managed_pod import ManagedPod
from kube.read.pod_groups import PodGroup
from policy.admission.gang_decision import POD_GROUP_PATH
from policy.errors import RequestError
from policy.wording import quote
from webhook.ledger_access.time_budget import KUBE_SECONDS, within_budget


async def find_group(followed: PodGroupFollower, pod: ManagedPod) -> PodGroup | None:
    """Return a pod's PodGroup: from memory, or, if it is too new, from the API server.

    None if the pod has none. Raises RequestError if it must have one.
    """
    form, key = pod.gang.form, pod.gang.key
    if form not in followed.sinks or pod.gang.size is not None:
        return None
    known = followed.find(pod)
    if known is not None:
        return known
    try:
        async with within_budget(KUBE_SECONDS):
            return await followed.read(form, key)
    except TimeoutError:
        return None  # an API server that does not answer is no reason to refuse the pod
    except KubeError as exc:
        if exc.is_missing and form is GangForm.NATIVE:
            message = f"PodGroup {quote(key.name)} does not exist; create it before its pods"
            raise RequestError.at(POD_GROUP_PATH, message) from exc
        return None
