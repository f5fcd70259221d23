"""Holds of admins outlast the pods that state them: the owner does not lift one by deleting pods.

A controller creates deleted pods again, also after its workload was suspended. When a pod ends
whose hold by an admin is in force, the other members of its gang, and later pods of the same
workload, are held as it was. The leader writes that on them, so that an admin can lift the hold
there. It is forgotten when an admin changes it on any pod.

Every replica remembers such holds in memory. A workload that is created again is another one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from kube.lives.pod_holds import PodHold
from kube.read.managed_pod import ManagedPod
from kube.read.workloads import WorkloadKey
from policy.queues.holds import HoldRole
from policy.submission import PodUid
from service.memory import BoundedMap

_MOST_LINES: Final = 10_000

_Line = tuple[WorkloadKey, str]
"""The pods of a workload that replace each other, and the name of their gang if it has one."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A hold that has lost a pod, and the pods of its line that it did not hold."""

    hold: PodHold
    others: frozenset[PodUid]


class KeptHolds:
    """The holds of admins whose pods have ended."""

    def __init__(self, pods_of: Callable[[WorkloadKey], Iterable[ManagedPod]]) -> None:
        self._pods_of = pods_of
        self._lines: BoundedMap[_Line | None, _Kept] = BoundedMap(_MOST_LINES)
        self._given: dict[PodUid, PodHold] = {}
        """Holds that pods have from others and do not state yet."""
        self.on_given: list[Callable[[], None]] = []
        """Callbacks that run when a pod has a hold from another one."""

    def apply(self, pod: ManagedPod) -> ManagedPod:
        """Return a pod with the hold that it has from an earlier one, unless it states one."""
        kept = self._given.get(pod.uid) or self._find(pod)
        if kept is None or not pod.is_gated or _strength(pod.hold) >= _strength(kept):
            self._given.pop(pod.uid, None)
            return pod
        if pod.uid not in self._given:
            self._given[pod.uid] = kept
            for tell in self.on_given:
                tell()
        return replace(pod, hold=kept)

    def _find(self, pod: ManagedPod) -> PodHold | None:
        line = _line_of(pod) if self._lines else None
        kept = self._lines.get(line) if line is not None else None
        return None if kept is None or pod.uid in kept.others else kept.hold

    def keep(self, ended: ManagedPod) -> bool:
        """A pod has ended while its hold was in force; tell whether that holds other pods now.

        The hold of an owner ends with its pod.
        """
        line, hold = _line_of(ended), ended.hold
        if line is None or hold is None or hold.holder.role is HoldRole.OWNER:
            return False
        known = self._lines.get(line)
        if known is not None and _strength(known.hold) >= _strength(hold):
            return False
        others = () if line[1] else self._pods_of(line[0])
        self._lines[line] = _Kept(hold, frozenset(pod.uid for pod in others))
        return True

    def note_change(self, before: ManagedPod | None, after: ManagedPod) -> None:
        """A pod states another hold than before: an admin who changed its hold has lifted it.

        The webhook lets no other user do so.
        """
        was = before.hold if before is not None and after.uid not in self._given else None
        if was is not None and was != after.hold and was.holder.role is not HoldRole.OWNER:
            self._lines.pop(_line_of(after), None)

    def forget(self, uid: PodUid) -> None:
        """A pod has ended."""
        self._given.pop(uid, None)

    @property
    def unwritten(self) -> dict[PodUid, PodHold]:
        """The holds that pods have from others and do not state yet."""
        return dict(self._given)


def _line_of(pod: ManagedPod) -> _Line | None:
    if pod.workload_key is None:
        return None
    is_single = pod.is_charged_alone or pod.gang.key.name == pod.name
    return pod.workload_key, "" if is_single else pod.gang.key.name


def _strength(hold: PodHold | None) -> int:
    return -1 if hold is None else hold.holder.strength
