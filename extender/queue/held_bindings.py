"""Bindings that are held: the members of a gang are bound together, or none of them is.

kube-scheduler asks to bind a member once the member has passed all its own checks, and does not
wait for the answer before it tries the next pod. So the answer to the first members is held until
enough members have arrived:

    first member arrives ──▶ held ──enough members have arrived──▶ all are bound
                              │
                              └── refused, silent, overdue, place lost ──▶ given up: none is bound

A gang that runs already, a gang of one, and a pod that the planner does not place are not held.
The planner withdraws the places of a gang that is given up, and plans it again.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from extender.queue.member_places import has_begun, is_bound
from extender.queue.ports import BindCalls, Cells
from extender.queue.queued_gang import QueuedGang
from policy.submission import GangKey, PodUid

QUIET_SECONDS: Final = 10.0
"""How long no further member may arrive. kube-scheduler binds more than 100 pods in a second; it
may have to wait for a volume."""


class GivenUp(StrEnum):
    """Why the bindings of a gang were given up."""

    REFUSED = "refused"
    """kube-scheduler refuses the node of a member."""
    SILENT = "silent"
    """No further member arrived for some time."""
    OVERDUE = "overdue"
    """Members kept arriving, but there are more than kube-scheduler checks in the longest hold."""
    PLACE_LOST = "place-lost"
    """A member lost its place, or is gone."""
    STOPPED = "stopped"
    """The leader stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a binding that was asked for."""

    gang: GangKey | None
    given_up: GivenUp | None = None
    """None: the pod is bound."""
    reason: Reason | None = None
    """Why it was given up."""


BIND: Final = Verdict(gang=None)
"""The pod is bound without being held."""


@dataclass(slots=True, kw_only=True)
class _Hold:
    """A gang whose members are held."""

    needed: int
    since: float
    last_arrival: float
    arrived: dict[PodUid, None] = field(default_factory=dict)

    def over(self, now: float, *, longest_seconds: float) -> GivenUp | None:
        """Return why it ends now; None if it goes on."""
        if now - self.last_arrival >= QUIET_SECONDS:
            return GivenUp.SILENT
        return GivenUp.OVERDUE if now - self.since >= longest_seconds else None


class HeldBindings:
    """The gangs that are held, and the verdicts that have not been taken yet."""

    def __init__(self, cells: Cells, calls: BindCalls) -> None:
        self._cells = cells
        self._calls = calls
        self._holds: dict[GangKey, _Hold] = {}
        self._verdicts: dict[PodUid, Verdict] = {}

    def __iter__(self) -> Iterator[GangKey]:
        return iter(self._holds)

    def __len__(self) -> int:
        return len(self._holds)

    def arrive(self, uid: PodUid, gang: QueuedGang | None, *, now: float) -> bool:
        """kube-scheduler asks to bind a member: hold it, or bind all members that were held.

        Return whether it is the first member of its gang that is held. The cost does not depend on
        the size of the gang, except for the first and the last member.
        """
        hold = self._holds.get(gang.key) if gang is not None else None
        if gang is None or (hold is None and not self._is_held(gang)):
            self._verdicts[uid] = BIND
            return False
        is_first = hold is None
        if hold is None:
            needed = self._needed(gang)
            hold = self._holds[gang.key] = _Hold(needed=needed, since=now, last_arrival=now)
        hold.arrived[uid] = None
        hold.last_arrival = now
        if len(hold.arrived) >= hold.needed:
            self.review(gang)
        return is_first

    def _is_held(self, gang: QueuedGang) -> bool:
        return gang.least > 1 and not has_begun(gang, self._cells)

    def _needed(self, gang: QueuedGang) -> int:
        """Return how many members must arrive: helpers may run before their gang does."""
        return gang.least - sum(is_bound(pod, self._cells) for pod in gang.pods.values())

    def review(self, gang: QueuedGang) -> None:
        """Bind the members of a gang, or give them up, if its state requires that."""
        hold = self._holds.get(gang.key)
        if hold is None:
            return
        self._drop_closed(gang.key, hold)
        if not hold.arrived:
            return
        hold.needed = self._needed(gang)
        if any(not self._has_place(uid, gang) for uid in hold.arrived):
            self.give_up(gang.key, GivenUp.PLACE_LOST)
        elif has_begun(gang, self._cells) or self._is_enough(hold, gang):
            del self._holds[gang.key]
            self._verdicts |= dict.fromkeys(hold.arrived, Verdict(gang=gang.key))

    def _is_enough(self, hold: _Hold, gang: QueuedGang) -> bool:
        """Tell whether enough members have arrived; helpers alone are not enough."""
        deciding = {pod.uid for pod in gang.deciding()}
        return len(hold.arrived) >= hold.needed and not deciding.isdisjoint(hold.arrived)

    def _has_place(self, uid: PodUid, gang: QueuedGang) -> bool:
        pod = gang.pods.get(uid)
        return pod is not None and (pod.is_helper or self._cells.has_place(uid))

    def refused_members(self, gang: QueuedGang) -> list[PodUid]:
        """Return the members of a held gang for which kube-scheduler last found no node."""
        hold = self._holds.get(gang.key)
        if hold is None:
            return []
        missing = (pod for pod in gang.members() if pod.uid not in hold.arrived)
        return [pod.uid for pod in missing if pod.is_refused]

    def _drop_closed(self, key: GangKey, hold: _Hold) -> None:
        """Forget the calls that kube-scheduler has given up: these pods are not bound now."""
        closed = [uid for uid in hold.arrived if not self._calls.is_open(uid)]
        for uid in closed:
            del hold.arrived[uid]
        if not hold.arrived:
            del self._holds[key]
        self._verdicts |= dict.fromkeys(closed, _verdict(key, GivenUp.SILENT))

    def take_overdue(self, now: float) -> dict[GangKey, GivenUp]:
        """Return the gangs that have been held for too long; forget those without callers."""
        longest = self._calls.longest_seconds
        found = {key: hold.over(now, longest_seconds=longest) for key, hold in self._holds.items()}
        overdue = {key: why for key, why in found.items() if why is not None}
        for key in overdue:
            self._drop_closed(key, self._holds[key])
        return {key: why for key, why in overdue.items() if key in self._holds}

    def arrived(self, key: GangKey) -> Collection[PodUid]:
        """Return the members of a gang that are held."""
        hold = self._holds.get(key)
        return hold.arrived if hold is not None else ()

    def give_up(self, key: GangKey, why: GivenUp) -> None:
        """Answer all calls of a gang, if it is held: none of its members is bound."""
        hold = self._holds.pop(key, None)
        if hold is not None:
            self._verdicts |= dict.fromkeys(hold.arrived, _verdict(key, why))

    def take_verdicts(self) -> dict[PodUid, Verdict]:
        """Return the new verdicts."""
        taken, self._verdicts = self._verdicts, {}
        return taken

    def reason(self, key: GangKey) -> Reason | None:
        """Explain why a gang is held, if it is."""
        hold = self._holds.get(key)
        if hold is None:
            return None
        told = {"members": len(hold.arrived), "needed": hold.needed}
        return explain(ReasonCode.HELD_AT_BINDING, gang=str(key), **told)


def _verdict(key: GangKey, why: GivenUp) -> Verdict:
    return Verdict(
        gang=key,
        given_up=why,
        reason=explain(ReasonCode.BINDING_GIVEN_UP, gang=str(key), cause=str(why)),
    )
