"""Members that have places, by UID, gang and node, for lookups of one of them.

The engine shows its state only as a whole.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from extender.cells.model import MemberRequest
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member, as it was last placed or found running."""

    request: MemberRequest
    placement: Placement
    is_bound: bool
    is_foreign: bool = False
    """Whether it runs in a place that we did not give it."""


class MemberIndex:
    """All members that have places."""

    def __init__(self) -> None:
        self._by_uid: dict[PodUid, Member] = {}
        self._by_gang: dict[GangKey, dict[PodUid, None]] = {}
        self._by_node: dict[NodeName, dict[PodUid, None]] = {}
        self.on_change: list[Callable[[PodUid, Member | None], None]] = []
        """Callbacks that run when a member has a place, another place, or none any more."""

    def __len__(self) -> int:
        return len(self._by_uid)

    @property
    def gang_count(self) -> int:
        """The number of gangs that have members."""
        return len(self._by_gang)

    def get(self, uid: PodUid) -> Member | None:
        """Return the member, if it has a place."""
        return self._by_uid.get(uid)

    def is_foreign(self, uid: PodUid) -> bool:
        """Tell whether a member runs in a place that we did not give it."""
        member = self._by_uid.get(uid)
        return member is not None and member.is_foreign

    def items(self) -> list[tuple[PodUid, Member]]:
        """Return all members."""
        return list(self._by_uid.items())

    def uids(self) -> list[PodUid]:
        """Return the UIDs of all members."""
        return list(self._by_uid)

    def of_gang(self, gang: GangKey) -> list[PodUid]:
        """Return the members of a gang, by the engine's key."""
        return list(self._by_gang.get(gang, ()))

    def items_of(self, gangs: Iterable[GangKey]) -> list[tuple[PodUid, Member]]:
        """Return the members of some gangs."""
        return [(uid, self._by_uid[uid]) for gang in gangs for uid in self.of_gang(gang)]

    def items_on(self, nodes: Iterable[NodeName]) -> list[tuple[PodUid, Member]]:
        """Return the members on some nodes."""
        return [(uid, self._by_uid[uid]) for node in nodes for uid in self._by_node.get(node, ())]

    def add(self, member: Member) -> None:
        """Note that a member has a place; a bound member stays bound."""
        uid, gang = member.request.member, member.request.gang
        before = self._by_uid.get(uid)
        if before is not None and before.request.gang != gang:
            self.remove(uid)
        if before is None or member.is_bound or not before.is_bound:
            self._leave_node(uid)
            self._by_uid[uid] = member
            self._by_node.setdefault(member.placement.node, {})[uid] = None
        self._by_gang.setdefault(gang, {})[uid] = None
        for notify in self.on_change:
            notify(uid, self._by_uid[uid])

    def rerank(self, gang: GangKey, priority: int) -> None:
        """Give a gang another priority."""
        for uid in self.of_gang(gang):
            member = self._by_uid[uid]
            request = replace(member.request, priority=priority)
            self._by_uid[uid] = replace(member, request=request)

    def remove(self, uid: PodUid) -> None:
        """Note that a member has no place any more."""
        self._leave_node(uid)
        member = self._by_uid.pop(uid, None)
        if member is None:
            return
        siblings = self._by_gang[member.request.gang]
        del siblings[uid]
        if not siblings:
            del self._by_gang[member.request.gang]
        for notify in self.on_change:
            notify(uid, None)

    def _leave_node(self, uid: PodUid) -> None:
        member = self._by_uid.get(uid)
        if member is not None:
            there = self._by_node[member.placement.node]
            del there[uid]
            if not there:
                del self._by_node[member.placement.node]

    def count_leases(self) -> int:
        """Count the gangs that have a place and are not bound yet."""
        gangs = {one.request.gang for one in self._by_uid.values() if not one.is_bound}
        return len(gangs)

    def claimed_cells(self) -> set[tuple[str, str]]:
        """Return address and type of every preassigned cell that is in use."""
        return {
            (where.vc_cell, where.vc_cell_type)
            for where in (member.placement for member in self._by_uid.values())
            if where.vc_cell is not None and where.vc_cell_type is not None
        }
