"""Windows: the largest shapes that can start now, and until when.

For each number of leaf cells per member the largest number of members is searched that gets places
now. A gang that may start with one member is planned for that: the engine then places as many as
fit. Beside the reservations of others, and off nodes with a maintenance window, a gang may run
without an end. It may be larger if it ends before reserved cells are needed and windows begin.

Leaf cells alone are considered: what pods need beside them is not known here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from extender.cells.model import (
    OPPORTUNISTIC,
    Decision,
    MemberRequest,
    Place,
    Preempt,
    Seat,
)
from extender.cells.views.listings import Stepwise
from extender.queue.model import QueuedPod
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import Guard
from extender.queue.reserve.gaps import Gaps
from extender.queue.variants.trials import Prepare
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import Chain, Topology

MOST_MEMBERS: Final = 64
"""Members up to which shapes are searched: one plan of more would block others for too long."""
_LEAST_SECONDS: Final = 60.0
"""A shorter time until cells are needed is of no use."""
_NO_GANG: Final = GangKey("", "*")
"""No gang has this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowShape:
    """Members of one size that can start together now."""

    members: int
    leaf_cells: int
    """Of each member."""
    until: float | None = None
    """The moment before which the gang must end, in seconds since 1970; None: it need not."""
    reserved_for: GangKey | None = None
    """The gang or, without namespace, the advance reservation for which the cells are reserved."""
    window: str | None = None
    """The maintenance window that begins then."""
    victims: int = 0
    """The number of opportunistic gangs that end for it."""
    is_most: bool = False
    """Whether more members were not tried."""

    @property
    def total(self) -> int:
        """All its leaf cells."""
        return self.members * self.leaf_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class StartWindow:
    """What can start now in a VC, or as opportunistic gang, on leaf cells of one type."""

    at: float
    shapes: tuple[WindowShape, ...] = ()
    """For each size of members: without an end; with one, if larger; preempting, if larger."""

    @property
    def largest(self) -> WindowShape | None:
        """The shape with the most leaf cells, of those that start at once and need not end."""
        return max(self._endless(), key=lambda one: (one.total, one.leaf_cells), default=None)

    @property
    def largest_on_one_node(self) -> WindowShape | None:
        """The largest single member, of those that start at once and need not end."""
        found = max(self._endless(), key=lambda one: one.leaf_cells, default=None)
        return None if found is None else replace(found, members=1, is_most=False)

    def _endless(self) -> Iterator[WindowShape]:
        return (one for one in self.shapes if one.until is None and not one.victims)


class WindowSearch:
    """Searches windows; changes nothing."""

    def __init__(self, cells: Cells, nodes: Nodes, gaps: Gaps, *, prepare: Prepare) -> None:
        self._cells = cells
        self._nodes = nodes
        self._gaps = gaps
        self._prepare = prepare

    def find(
        self, *, vc: VcName, leaf_type: LeafType, priority: int, topology: Topology, now: float
    ) -> Stepwise[StartWindow]:
        """Return what can start now; below 0 the priority is that of opportunistic gangs."""
        request = MemberRequest(
            member=PodUid(_NO_GANG.name),
            gang=_NO_GANG,
            leaf_count=1,
            gang_leaf_counts=(1,),
            leaf_type=leaf_type,
            vc=vc,
            priority=priority,
        )
        gang = _imagined(request)
        endless = self._gaps.guard(gang, ends_at=inf)
        nodes = _open_nodes(self._nodes, endless)
        before = _open_nodes(self._nodes, self._gaps.guard(gang, ends_at=now))
        found: list[WindowShape] = []
        for size in member_sizes(topology, leaf_type):
            asked = replace(request, leaf_count=size, gang_leaf_counts=(size,))
            if not self._cells.is_ready(asked):
                yield from self._prepare(asked)
            plans = _Plans(
                self._cells, asked, guard=endless, nodes=nodes, nodes_before=before, now=now
            )
            found += yield from self._find_for(asked, plans)
        return StartWindow(at=now, shapes=tuple(found))

    def _find_for(self, request: MemberRequest, plans: "_Plans") -> Stepwise[list[WindowShape]]:
        """Return the shapes of one size, each with more members than those before."""
        most = self._cells.most_leaf_cells(request)
        members = MOST_MEMBERS if most is None else min(MOST_MEMBERS, most // request.leaf_count)
        found: list[WindowShape] = []
        for search in (plans.beside, plans.within, plans.preempting):
            known = found[-1].members if found else 0
            if known < members:
                found += yield from search(known, members)
        return found


class _Plans:
    """Plans of one size of members; each search returns a shape with more members than known."""

    def __init__(
        self,
        cells: Cells,
        request: MemberRequest,
        *,
        guard: Guard,
        nodes: Mapping[NodeName, None],
        nodes_before: Mapping[NodeName, None],
        now: float,
    ) -> None:
        """`nodes` are for a gang that never ends, `nodes_before` for one that ends at once."""
        self._cells = cells
        self._request = request
        self._guard = guard
        self._nodes = nodes
        self._nodes_before = nodes_before
        self._now = now

    def beside(self, known: int, most: int) -> Stepwise[list[WindowShape]]:
        """Leave alone what is reserved."""
        decision = self._plan(most, least=1, kept=self._guard.kept)
        yield
        return self._shapes(decision, known) if isinstance(decision, Place) else []

    def within(self, known: int, most: int) -> Stepwise[list[WindowShape]]:
        """Use what is reserved, and nodes before their maintenance, until it is needed."""
        is_more = len(self._nodes_before) > len(self._nodes)
        if not self._guard.binding and not is_more:
            return []
        decision = self._plan(most, least=1, kept=(), nodes=self._nodes_before)
        yield
        if not isinstance(decision, Place):
            return []
        shapes = [self._ending(one, decision) for one in self._shapes(decision, known)]
        return [one for one in shapes if (one.until or inf) - self._now >= _LEAST_SECONDS]

    def _ending(self, shape: WindowShape, decision: Place) -> WindowShape:
        """Say what the cells of a decision are needed for first."""
        if self._guard.binding:
            used = self._guard.reserved_for(decision)
            shape = replace(shape, until=used.deadline, reserved_for=used.gang)
        nodes = (place.node for place in (decision.placement, *decision.others))
        for window in (
            self._guard.maintained[node] for node in nodes if node in self._guard.maintained
        ):
            if window.begins < (inf if shape.until is None else shape.until):
                shape = replace(shape, until=window.begins, window=window.name, reserved_for=None)
        return shape

    def preempting(self, known: int, most: int) -> Stepwise[list[WindowShape]]:
        """Leave alone what is reserved, and end opportunistic gangs; halve the number of members.

        All members that may fit are tried first: mostly the VC gets all that it was promised.
        """
        if self._request.priority == OPPORTUNISTIC:
            return []
        best: list[WindowShape] = []
        low, high, middle = known, most, most
        while low < high:
            decision = self._plan(middle, least=None, kept=self._guard.kept)
            yield
            if isinstance(decision, Preempt) and decision.victims:
                shape = self._shape(middle)
                best, low = [replace(shape, victims=len(decision.victims))], middle
            elif isinstance(decision, Place):
                best, low = self._shapes(decision, known), middle
            else:
                high = middle - 1
            middle = (low + high + 1) // 2
        return best

    def _plan(
        self,
        members: int,
        *,
        least: int | None,
        kept: Sequence[Seat],
        nodes: Mapping[NodeName, None] | None = None,
    ) -> Decision:
        sizes = (self._request.leaf_count,) * members
        request = replace(self._request, gang_leaf_counts=sizes, gang_min=least)
        offered = self._nodes if nodes is None else nodes
        return self._cells.plan(request, candidate_nodes=offered, now=self._now, kept=kept)

    def _shapes(self, decision: Place, known: int) -> list[WindowShape]:
        shape = self._shape(1 + len(decision.others))
        return [shape] if shape.members > known else []

    def _shape(self, members: int) -> WindowShape:
        is_most = members == MOST_MEMBERS
        return WindowShape(members=members, leaf_cells=self._request.leaf_count, is_most=is_most)


def _open_nodes(nodes: Nodes, guard: Guard) -> Mapping[NodeName, None]:
    return dict.fromkeys(
        nodes.suiting((), without={**dict.fromkeys(guard.closed), **guard.maintained})
    )


def _imagined(request: MemberRequest) -> QueuedGang:
    gang = QueuedGang(request.gang)
    gang.put(QueuedPod(request=request, gang_size=1, is_gated=True, may_preempt=False))
    return gang


def member_sizes(topology: Topology, leaf_type: LeafType) -> list[int]:
    """Return the sizes of members that are tried: powers of two, and a whole node."""
    largest = max(map(_node_size, _chains(topology, leaf_type)), default=0)
    powers = [2**power for power in range(largest.bit_length()) if 2**power < largest]
    return [*powers, largest] if largest else []


def _chains(topology: Topology, leaf_type: LeafType) -> list[Chain]:
    return [chain for chain in topology.chains.values() if chain.leaf_type == leaf_type]


def _node_size(chain: Chain) -> int:
    return max((level.leaf_count for level in chain.levels if level.is_node), default=1)
