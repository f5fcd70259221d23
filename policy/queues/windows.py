"""Advance reservations and maintenance windows: what an admin plans for a stretch of time.

Times are seconds since 1970. A window is in force from `begins` until `ends`, `ends` excluded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from policy.capacity import Capacity
from policy.errors import Problem
from policy.queues.who import AskingGang, Who
from policy.submission import LeafType, NodeName, VcName
from policy.wording import join_path, moment, quote

Labels = tuple[tuple[str, str], ...]
DRAIN: Final = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceReservation:
    """Leaf cells of a VC that only some of its gangs may use for a time."""

    name: str
    vc: VcName
    leaf_type: LeafType | None = None
    members: int
    leaf_cells: int
    """Of each member: they lie on one node."""
    who: Who
    begins: float
    ends: float

    @property
    def total(self) -> int:
        """All its leaf cells."""
        return self.members * self.leaf_cells

    def covers(self, gang: AskingGang) -> bool:
        """Tell whether the leaf cells are reserved for a gang."""
        return gang.vc == self.vc and self.who.takes(gang)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """Nodes that no gang uses for a time."""

    name: str
    nodes: tuple[NodeName, ...] = ()
    labels: Labels = ()
    """Nodes with all these labels belong to it, too; none if there are no labels."""
    begins: float
    ends: float
    reason: str = ""
    notice: float
    """How many seconds before it begins the owners of gangs are told that still run then."""
    opportunistic: Literal["drain", "allow"] = DRAIN
    """Whether opportunistic gangs that may still run when it begins start before it."""

    def covers(self, name: NodeName, labels: Mapping[str, str]) -> bool:
        """Tell whether a node belongs to it."""
        if name in self.nodes:
            return True
        return bool(self.labels) and all(labels.get(key) == value for key, value in self.labels)


def promise_problems(
    reservations: tuple[AdvanceReservation, ...], capacity: Capacity | None
) -> Iterator[Problem]:
    """Yield the reservations that need more than their VC was promised, with the sum.

    All that are in force at the same time count together.
    """
    for place, one in enumerate(reservations if capacity is not None else ()):
        assert capacity is not None
        path = join_path(("reservations", place))
        chains = [chain for chain in capacity.chains if one.leaf_type in (None, chain.leaf_type)]
        shares = [chain.of_vc[one.vc] for chain in chains if one.vc in chain.of_vc]
        kind = f" of type {one.leaf_type}" if one.leaf_type is not None else ""
        largest = max((share.largest for share in shares), default=0)
        if not largest:
            field = "vc" if one.leaf_type is None else "leafType"
            message = f"VC {quote(one.vc)} was promised no leaf cells{kind}"
            yield Problem(f"{path}.{field}", message)
            continue
        if one.leaf_cells > largest:
            message = (
                f"VC {quote(one.vc)} was promised at most {largest} leaf cells{kind} on one node"
            )
            yield Problem(f"{path}.leafCells", f"must be at most {largest}: {message}")
            continue
        chain_count = max(share.leaf_count for share in shares)
        if one.total > chain_count and len(shares) > 1:
            message = (
                f"must be at most {chain_count // one.leaf_cells}: a gang lies in one chain, and "
                f"of none was VC {quote(one.vc)} promised more than {chain_count} leaf cells{kind}"
            )
            yield Problem(f"{path}.members", message)
            continue
        # What any type may serve uses what reservations of one type leave: it adds to the sum of
        # all types, but not to that of one.
        for leaf_type in dict.fromkeys((one.leaf_type, None)):
            problem = _sum_problem(
                one, reservations=reservations, capacity=capacity, leaf_type=leaf_type
            )
            if problem is not None:
                yield Problem(path, problem)
                break


def _sum_problem(
    one: AdvanceReservation,
    *,
    reservations: Iterable[AdvanceReservation],
    capacity: Capacity,
    leaf_type: LeafType | None,
) -> str | None:
    """Say that reservations of a leaf type, or of all, need too much when one of them begins."""
    together = [
        other
        for other in reservations
        if other.vc == one.vc
        and other.begins <= one.begins < other.ends
        and leaf_type in (None, other.leaf_type)
    ]
    promised = sum(
        chain.of_vc[one.vc].leaf_count
        for chain in capacity.chains
        if one.vc in chain.of_vc and leaf_type in (None, chain.leaf_type)
    )
    total = sum(other.total for other in together)
    if total <= promised:
        return None
    kind = f" of type {leaf_type}" if leaf_type is not None else ""
    terms = " + ".join(f"{other.name} {other.total}" for other in together)
    return (
        f"reservations at {moment(one.begins)} need {total} leaf cells{kind} ({terms}), but VC "
        f"{quote(one.vc)} was promised {promised}; ask for less, for another time, or raise the "
        "promise in the Cluster document"
    )


def next_boundary(times: Iterable[float], *, now: float) -> float | None:
    """Return the first of these times that is yet to come."""
    return min((time for time in times if time > now), default=None)
