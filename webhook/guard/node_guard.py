"""Which users may create a managed pod that already names its node (`spec.nodeName`).

No scheduler looks at such a pod: it would use devices that are promised to other VCs, and no plan
accounts for it. The users that may bind managed pods may also create them on a node, and so may a
kubelet its own mirror pods. A trusted controller may do what the stamped submitter may do.
"""

from collections.abc import Collection
from typing import Final

from kube.follow.policies import PolicySink
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.wording import quote
from webhook.wire import ReviewRequest, UserInfo

_REFUSED: Final = (
    "only Cellgate, its kube-scheduler and admins choose the node of a pod that asks for leaf "
    "cells; leave spec.nodeName out, and choose nodes with spec.nodeSelector or "
    "spec.affinity.nodeAffinity; an admin can allow other schedulers with --binders"
)
_KUBELETS: Final = "system:nodes"


class NodeGuard:
    """Checks new pods that name their node."""

    def __init__(self, policies: PolicySink, *, binders: Collection[str]) -> None:
        """`binders` are all users and groups that may bind managed pods."""
        self._policies = policies
        self._binders = binders

    def check(self, review: ReviewRequest, pod: ManagedPod) -> None:
        """Raise RequestError if the user of a review may not choose the node of a pod."""
        if pod.node is None or _is_own_mirror(review.user, pod):
            return
        if not self._chooser(review.user, pod).is_any_of(self._binders):
            raise RequestError.at("spec.nodeName", f"is {quote(pod.node)}; {_REFUSED}")

    def _chooser(self, sender: UserInfo, pod: ManagedPod) -> UserInfo:
        """Return the user that chose the node: the sender, or the submitter that it stands for."""
        is_trusted = self._policies.policy.identity.is_trusted(sender.username)
        if pod.submitter is None or not is_trusted:
            return sender
        return UserInfo(username=pod.submitter, groups=pod.submitter_groups)


def _is_own_mirror(sender: UserInfo, pod: ManagedPod) -> bool:
    """Whether a kubelet creates the mirror pod of a static pod on its own node."""
    is_kubelet = sender.username == f"system:node:{pod.node}" and _KUBELETS in sender.groups
    return is_kubelet and pod.is_mirror
