"""Gated pods that are not planned yet, and what each of them waits for.

They wait for something beside leaf cells: quota, a PodGroup, a class, the gate of another
controller, the end of a user's hold. The planner does not see them: it would end victims, or lease
cells, for pods that cannot start.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.feeds.requests import single_gang
from extender.planning.quota_queue import QuotaQueue
from extender.planning.user_requests.user_holds import UserHolds
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import GangKey, PodUid

_PATIENCE_SECONDS: Final = 5.0
_PATIENT: Final = (ReasonCode.OTHER_GATE, ReasonCode.NO_POD_GROUP)
"""What usually changes at once, and is reported only after some seconds."""
BY_USERS: Final = (ReasonCode.HELD_BY_USER, ReasonCode.HELD_BY_ADMIN)
"""A user holds the gang: that counts more than why it waited before."""
HOLDING: Final = (
    *_PATIENT,
    *BY_USERS,
    ReasonCode.QUOTA,
    ReasonCode.UNKNOWN_CLASS,
    ReasonCode.NO_SCHEDULER,
)
"""Why pods are held; the planner has other reasons."""


class HeldPods:
    """The pods that are held, as they were last seen, and why."""

    def __init__(
        self,
        *,
        awaits_group: Callable[[ManagedPod], bool],
        quota: QuotaQueue | None,
        by_users: UserHolds,
    ) -> None:
        """`awaits_group` tells whether the size of a pod's gang is not known yet."""
        self.by_users = by_users
        self._awaits_group = awaits_group
        self._quota = quota
        self._reasons: dict[PodUid, Reason] = {}
        self._pods: dict[ReasonCode, dict[PodUid, ManagedPod]] = defaultdict(dict)
        self._unreported: dict[PodUid, float] = {}
        """Pods whose reason is to be reported, and when."""

    def reason_to_hold(self, pod: ManagedPod) -> Reason | None:
        """Return what a pod waits for before it can be planned."""
        if not pod.is_gated:
            return None
        gang, held = str(gang_of(pod)), self.by_users.reason(pod)
        if held is not None:
            return held
        if self._quota is not None and self._quota.holds(pod):
            count = pod.leaf_count if pod.is_charged_alone else pod.gang_leaf_count
            group = str(pod.charged_group)
            return explain(ReasonCode.QUOTA, gang=gang, group=group, leaf_cells=count or 0)
        if pod.is_held_by_others:
            return explain(ReasonCode.OTHER_GATE, pod=pod.display_name)
        return explain(ReasonCode.NO_POD_GROUP, gang=gang) if self._awaits_group(pod) else None

    def put(self, pod: ManagedPod, reason: Reason, *, now: float) -> None:
        """Hold a pod; a change of the pod alone is not reported again."""
        before = self._reasons.get(pod.uid)
        is_other = before is None or before.code is not reason.code
        if is_other or (reason.code in BY_USERS and before != reason):
            self.remove(pod)
            patience = _PATIENCE_SECONDS if reason.code in _PATIENT else 0.0
            self._unreported[pod.uid] = now + patience
        self._reasons[pod.uid] = reason
        self._pods[reason.code][pod.uid] = pod

    def remove(self, pod: ManagedPod) -> Reason | None:
        """Do not hold a pod any more; return its reason if that was reported."""
        reason = self._reasons.pop(pod.uid, None)
        if reason is None:
            return None
        del self._pods[reason.code][pod.uid]
        return reason if self._unreported.pop(pod.uid, None) is None else None

    def get(self, uid: PodUid, code: ReasonCode) -> ManagedPod | None:
        """Return a pod, if it is held for this reason."""
        return self._pods[code].get(uid)

    def reason(self, uid: PodUid) -> Reason | None:
        """Return why a pod is held, if it is."""
        return self._reasons.get(uid)

    def holds_any(self, code: ReasonCode) -> bool:
        """Whether pods are held for a reason."""
        return bool(self._pods[code])

    def by_code(self, code: ReasonCode) -> list[ManagedPod]:
        """Return all pods that are held for a reason."""
        return list(self._pods[code].values())

    def take_due(self, now: float) -> Iterator[tuple[ManagedPod, Reason]]:
        """Return the pods whose reason is to be reported by now, each once."""
        for uid in [uid for uid, due in self._unreported.items() if due <= now]:
            del self._unreported[uid]
            reason = self._reasons[uid]
            yield self._pods[reason.code][uid], reason


def unknown_class(pod: ManagedPod, error: RequestError) -> Reason:
    """Explain that a pod has an unlisted class: the webhook was away when it was created."""
    return explain(ReasonCode.UNKNOWN_CLASS, gang=str(gang_of(pod)), problem=str(error))


def gang_of(pod: ManagedPod) -> GangKey:
    """Return the gang that waits while a pod is held."""
    return single_gang(pod) if pod.is_charged_alone else pod.gang.key
