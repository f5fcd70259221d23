"""The gangs that run on nodes of a maintenance window, and when they are expected to end."""

from collections.abc import Collection
from dataclasses import dataclass

from extender.cluster.members import MemberIndex
from extender.queue.reserve.reservations import Reservations
from policy.queues.windows import MaintenanceWindow
from policy.submission import GangKey, NodeName, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcernedGang:
    """A gang with members on nodes of a window."""

    gang: GangKey
    member: PodUid
    """One of these members."""
    nodes: tuple[NodeName, ...]
    expected_end: float | None
    """In seconds since 1970; None if it is unknown."""

    def is_expected_at(self, time: float) -> bool:
        """Tell whether the gang may still run then."""
        return self.expected_end is None or self.expected_end > time


def find_concerned(
    window: MaintenanceWindow, *, members: MemberIndex, reservations: Reservations
) -> list[ConcernedGang]:
    """Return the gangs on nodes of a window, by name."""
    nodes: Collection[NodeName] = reservations.calendar.nodes_of(window)
    found: dict[GangKey, dict[NodeName, PodUid]] = {}
    for uid, member in members.items_on(nodes):
        if member.is_bound:
            found.setdefault(member.request.gang, {})[member.placement.node] = uid
    return [
        ConcernedGang(
            gang=gang,
            member=min(on.values()),
            nodes=tuple(sorted(on)),
            expected_end=reservations.expected_end(gang),
        )
        for gang, on in sorted(found.items())
    ]
