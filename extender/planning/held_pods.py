"""Pods behind our gate that are not planned yet, and what each of them waits for.

They wait for something beside leaf cells: quota, a PodGroup, a class, the gate of another
controller. The planner does not see them: it would end victims, or lease cells, for pods that
cannot start.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from extender.feeds.requests import single_gang
from extender.planning.quota_queue import QuotaQueue
from kube.read.managed_pod import ManagedPod
from policy.errors import RequestError
from policy.submission import GangKey, PodUid

_PATIENCE_SECONDS: Final = 5.0
"""PodGroups and the gates of other controllers usually follow at once: that is not reported."""


class HoldCode(StrEnum):
    """What a pod waits for, for machines."""

    QUOTA = "quota"
    GATE = "other-gate"
    POD_GROUP = "no-pod-group"
    CLASS = "unknown-class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Why a pod is not planned."""

    gang: GangKey
    code: HoldCode
    reason: str
    change: str
    patience_seconds: float = 0.0
    """How long it is kept before its owner is informed."""


def _quota_hold(pod: ManagedPod) -> Hold:
    """Hold a pod whose gang is not charged."""
    gang = single_gang(pod) if pod.is_charged_alone else pod.gang.key
    leaf_count = pod.leaf_count if pod.is_charged_alone else pod.gang_leaf_count
    needed = "the gang" if leaf_count is None else f"{leaf_count} more leaf cells"
    return _hold(
        gang,
        HoldCode.QUOTA,
        problem=f"gang {gang} waits for quota of group {pod.charged_group}",
        change=f"starts once the group's quota has room for {needed}",
    )


def _gate_hold(pod: ManagedPod) -> Hold:
    """Hold a pod that has a gate of another controller, too."""
    return _hold(
        pod.gang.key,
        HoldCode.GATE,
        problem=f"pod {pod.display_name} has a scheduling gate of another controller",
        change="scheduled once that controller has removed it",
        patience_seconds=_PATIENCE_SECONDS,
    )


def _group_hold(pod: ManagedPod) -> Hold:
    """Hold a pod whose PodGroup, and so its gang's size, is not known."""
    return _hold(
        pod.gang.key,
        HoldCode.POD_GROUP,
        problem=f"gang {pod.gang.key} has no PodGroup that gives its size",
        change="create the PodGroup, or correct its name in the pods",
        patience_seconds=_PATIENCE_SECONDS,
    )


def class_hold(pod: ManagedPod, error: RequestError) -> Hold:
    """Hold a pod of a class that is not listed: the webhook was away when it was created."""
    change = "list its class, or create the pod again with a listed class"
    return _hold(pod.gang.key, HoldCode.CLASS, problem=str(error), change=change)


def _hold(
    gang: GangKey, code: HoldCode, *, problem: str, change: str, patience_seconds: float = 0.0
) -> Hold:
    reason = f"{problem}; {change}"
    return Hold(
        gang=gang, code=code, reason=reason, change=change, patience_seconds=patience_seconds
    )


class HeldPods:
    """The pods that are held, as they were last seen."""

    def __init__(
        self, *, awaits_group: Callable[[ManagedPod], bool], quota: QuotaQueue | None
    ) -> None:
        """`awaits_group` tells whether the size of a pod's gang is not known yet."""
        self._awaits_group = awaits_group
        self._quota = quota
        self._pods: dict[HoldCode, dict[PodUid, ManagedPod]] = {code: {} for code in HoldCode}
        self._holds: dict[PodUid, Hold] = {}
        self._unreported: dict[PodUid, float] = {}
        """Pods whose hold is to be reported, and when."""

    def hold_of(self, pod: ManagedPod) -> Hold | None:
        """Return what a pod waits for before it can be planned."""
        if not pod.is_gated:
            return None
        if self._quota is not None and self._quota.holds(pod):
            return _quota_hold(pod)
        if pod.is_held_by_others:
            return _gate_hold(pod)
        return _group_hold(pod) if self._awaits_group(pod) else None

    def put(self, pod: ManagedPod, hold: Hold, *, now: float) -> None:
        """Hold a pod; a change of the pod alone is not reported again."""
        before = self._holds.get(pod.uid)
        if before is None or before.code is not hold.code:
            self.remove(pod.uid)
            self._unreported[pod.uid] = now + hold.patience_seconds
        self._holds[pod.uid] = hold
        self._pods[hold.code][pod.uid] = pod

    def remove(self, uid: PodUid) -> Hold | None:
        """Do not hold a pod any more; return its hold if that was reported."""
        hold = self._holds.pop(uid, None)
        if hold is None:
            return None
        del self._pods[hold.code][uid]
        return hold if self._unreported.pop(uid, None) is None else None

    def by_code(self, code: HoldCode) -> list[ManagedPod]:
        """Return the pods that are held for a reason."""
        return list(self._pods[code].values())

    def has(self, code: HoldCode) -> bool:
        """Whether pods are held for a reason."""
        return bool(self._pods[code])

    def awaiting_quota(self, uid: PodUid) -> ManagedPod | None:
        """Return a pod that waits for quota."""
        return self._pods[HoldCode.QUOTA].get(uid)

    def take_due(self, now: float) -> Iterator[tuple[ManagedPod, Hold]]:
        """Return the holds that are to be reported by now, each once."""
        for uid in [uid for uid, due in self._unreported.items() if due <= now]:
            del self._unreported[uid]
            hold = self._holds[uid]
            yield self._pods[hold.code][uid], hold
