"""Notices about waiting gangs: one for each change of the reason, or of its numbers."""

from collections.abc import Sequence

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.queue.model import Notice, QueuedPod
from extender.queue.queued_gang import QueuedGang
from policy.submission import GangKey

_GATHERING_SECONDS = 5.0
"""A gang whose pods are being created is incomplete for a moment: that is not reported."""


class Notices:
    """Collects the notices of one step after the other."""

    def __init__(self) -> None:
        self._due: dict[GangKey, Notice | None] = {}
        self._incomplete: dict[GangKey, tuple[QueuedGang, float]] = {}
        """Gangs with too few members, and since when."""

    def waits(self, gang: QueuedGang, reason: Reason, *, waiting: Sequence[QueuedPod]) -> None:
        """Note why a gang waits, unless one of the `waiting` members was given this reason.

        The first of them carries the notice: a member that runs does not wait.
        """
        is_known = any(pod.uid == gang.noticed_uid for pod in waiting)
        if gang.noticed != reason or not is_known:
            gang.noticed, gang.noticed_uid = reason, waiting[0].uid
            self._due[gang.key] = Notice(uid=waiting[0].uid, reason=reason)

    def resumed(self, gang: QueuedGang) -> None:
        """Note that a gang no longer waits for the reason of its last notice."""
        if gang.noticed is not None:
            gang.noticed = None
            self._due[gang.key] = None

    def note_placed(self, gang: QueuedGang) -> None:
        """Note that all members of a gang have places; pods beyond its size still wait."""
        waiting = [pod for pod in gang.surplus() if pod.node is None]
        if waiting:
            self.waits(gang, full_gang(gang, waiting[0]), waiting=waiting)
        else:
            self.resumed(gang)

    def note_incomplete(self, gang: QueuedGang, *, now: float) -> None:
        """Note that a gang has too few members."""
        self._incomplete.setdefault(gang.key, (gang, now))

    def note_complete(self, gang: QueuedGang) -> None:
        """Note that a gang has enough members."""
        self._incomplete.pop(gang.key, None)
        if gang.noticed is not None and gang.noticed.code is ReasonCode.GATHERING:
            self.resumed(gang)

    def forget(self, key: GangKey) -> None:
        """Forget a gang without pods."""
        self._incomplete.pop(key, None)

    def take(self, now: float) -> dict[GangKey, Notice | None]:
        """Return the new notices, including those of gangs that have been incomplete for long."""
        for gang, since in self._incomplete.values():
            if now - since >= _GATHERING_SECONDS and not _knows_members(gang):
                self.waits(gang, _incomplete(gang), waiting=gang.oldest_first())
        due, self._due = self._due, {}
        return due


def _knows_members(gang: QueuedGang) -> bool:
    """Whether the last notice says how many members exist now."""
    told = gang.noticed
    is_gathering = told is not None and told.code is ReasonCode.GATHERING
    return told is not None and is_gathering and told.arguments["members"] == len(gang.pods)


def _incomplete(gang: QueuedGang) -> Reason:
    told = {"members": len(gang.pods), "needed": gang.least, "size": gang.left.created_first}
    return explain(ReasonCode.GATHERING, gang=str(gang.key), **told)


def full_gang(gang: QueuedGang, pod: QueuedPod) -> Reason:
    """Explain that a pod is one member too many of its gang."""
    leaf_cells = pod.request.leaf_count
    members = sum(member.request.leaf_count == leaf_cells for member in gang.members())
    told = {"members": members or gang.size, "leaf_cells": leaf_cells}
    return explain(ReasonCode.GANG_FULL, gang=str(gang.key), **told)
