"""The engine: gangs on nodes, all-or-nothing.

The first member that asks makes the engine find room for its whole gang; the places of the members
that have not asked yet are held by the gang's *lease*. Each later member takes one of them. A lease
that nobody uses in time expires, and what was not bound under it is free again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from extender.cells.model import (
    Decision,
    MemberRequest,
    NodeCell,
    Place,
    Placement,
    Wait,
    WaitCode,
)
from extender.cells.nodes import NodeCells
from policy.submission import GangKey, NodeName, PodUid


@dataclass(slots=True, eq=False)
class _Gang:
    leaf_counts: tuple[int, ...]
    members: dict[PodUid, Placement] = field(default_factory=dict)
    bound: dict[PodUid, None] = field(default_factory=dict)
    held: list[Placement] = field(default_factory=list)
    lease_expires: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangView:
    """A gang as inspection shows it."""

    gang: GangKey
    size: int
    members: Mapping[PodUid, Placement]
    bound: tuple[PodUid, ...]
    held: tuple[Placement, ...]


class Engine:
    """Who has which leaf cell, and who may have which next."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._nodes = NodeCells()
        self._gangs: dict[GangKey, _Gang] = {}
        self._gang_of: dict[PodUid, GangKey] = {}

    # -- deciding

    def plan(self, request: MemberRequest, *, candidate_nodes: Collection[NodeName]) -> Decision:
        """Decide where a member goes, among the nodes that kube-scheduler offers it."""
        gang = self._gangs.get(request.gang)
        if gang is None:
            return self._find_room(request, request.gang_leaf_counts, candidate_nodes)
        if own := gang.members.get(request.member):
            return _at(request, own, candidate_nodes)
        held = [place for place in gang.held if len(place.leaf_cells) == request.leaf_count]
        for place in held:
            if place.node in candidate_nodes:
                return Place(request=request, placement=place)
        if held:
            return _at(request, held[0], candidate_nodes)
        if len(gang.members) >= len(gang.leaf_counts):
            return _gang_full(request, len(gang.leaf_counts))
        # Held places are of another size: the gang was taken for one whose members are alike.
        return self._find_room(
            request, (request.leaf_count,), candidate_nodes, given_up=tuple(gang.held[-1:])
        )

    def apply(self, decision: Decision, *, now: float) -> None:
        """Make a decision of `plan` true; a `Wait` changes nothing."""
        if isinstance(decision, Wait):
            return
        request, placement = decision.request, decision.placement
        gang = self._gangs.setdefault(request.gang, _Gang(request.gang_leaf_counts))
        gang.lease_expires = now + self._lease_seconds
        for given_up in decision.given_up:
            self._nodes.let_go(given_up)
            gang.held.remove(given_up)
        if placement in gang.held:
            gang.held.remove(placement)
        for other in decision.others:
            self._nodes.hold(other, None)
            gang.held.append(other)
        self._settle(gang, request, placement)

    def expire(self, *, now: float) -> list[GangKey]:
        """End the leases that were not used in time; returns the gangs that lost something."""
        expired = [
            key
            for key, gang in sorted(self._gangs.items())
            if gang.lease_expires <= now and (gang.held or len(gang.bound) < len(gang.members))
        ]
        for key in expired:
            self._end_lease(key)
        return expired

    # -- observing

    def observe_node(self, cell: NodeCell) -> None:
        """A node joined or changed."""
        self._nodes.put(cell)

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._nodes.drop(name)

    def observe_bound(
        self, request: MemberRequest, *, node: NodeName, leaf_cells: tuple[int, ...]
    ) -> None:
        """A member runs on a node, whoever put it there.

        `leaf_cells` is what its placement says; it is empty for a pod that we did not place, which
        is counted on the lowest leaf cells that nobody has.
        """
        placement = self.placement(request.member)
        if placement is None or placement.node != node:
            self.forget_member(request.member)
            seen = self._observed_placement(request, node=node, leaf_cells=leaf_cells)
            gang = self._gangs.setdefault(request.gang, _Gang(request.gang_leaf_counts))
            self._settle(gang, request, seen)
        self._gangs[self._gang_of[request.member]].bound[request.member] = None

    def forget_member(self, member: PodUid) -> None:
        """A member ended or was deleted: its leaf cells are free again."""
        key = self._gang_of.pop(member, None)
        if key is None:
            return
        gang = self._gangs[key]
        self._nodes.let_go(gang.members.pop(member))
        gang.bound.pop(member, None)
        if not gang.members:
            self._end_lease(key)

    # -- looking

    def placement(self, member: PodUid) -> Placement | None:
        """Where a member was placed, bound or not."""
        key = self._gang_of.get(member)
        return self._gangs[key].members[member] if key else None

    def nodes(self) -> list[tuple[NodeCell, Mapping[int, PodUid | None]]]:
        """All nodes with the holders of their leaf cells, by name."""
        return [
            (cell, self._nodes.holders(name))
            for name in self._nodes
            if (cell := self._nodes.cell(name))
        ]

    def gangs(self) -> list[GangView]:
        """All gangs that have leaf cells, by key."""
        return [
            GangView(
                gang=key,
                size=len(gang.leaf_counts),
                members=dict(gang.members),
                bound=tuple(gang.bound),
                held=tuple(gang.held),
            )
            for key, gang in sorted(self._gangs.items())
        ]

    # -- inside

    def _find_room(
        self,
        request: MemberRequest,
        leaf_counts: Sequence[int],
        candidate_nodes: Collection[NodeName],
        given_up: tuple[Placement, ...] = (),
    ) -> Decision:
        """Find places for members of these sizes at once; one is for the member that asks.

        The others are looked for among the same candidate nodes: a node that this member may not
        use (a taint, another vendor's devices) is most likely closed to them too.
        """
        others = list(leaf_counts)
        others.remove(request.leaf_count)
        taken: list[Placement] = []
        for placement in given_up:
            self._nodes.let_go(placement)
        try:
            for leaf_count in (request.leaf_count, *sorted(others, reverse=True)):
                node = self._nodes.tightest(
                    leaf_count, leaf_type=request.leaf_type, among=candidate_nodes
                )
                if node is None:
                    return _no_room(request, leaf_counts, found=len(taken))
                taken.append(self._nodes.lowest_leaves(node, leaf_count))
                self._nodes.hold(taken[-1], None)
            return Place(
                request=request, placement=taken[0], others=tuple(taken[1:]), given_up=given_up
            )
        finally:
            for placement in taken:
                self._nodes.let_go(placement)
            for placement in given_up:
                self._nodes.hold(placement, None)

    def _settle(self, gang: _Gang, request: MemberRequest, placement: Placement) -> None:
        self._nodes.hold(placement, request.member)
        gang.members[request.member] = placement
        self._gang_of[request.member] = request.gang

    def _observed_placement(
        self, request: MemberRequest, *, node: NodeName, leaf_cells: tuple[int, ...]
    ) -> Placement:
        """The leaf cells that a bound pod says it has, or others if that cannot be."""
        claimed = Placement(node=node, leaf_cells=leaf_cells)
        if leaf_cells and self._nodes.are_free(claimed):
            return claimed
        return self._nodes.lowest_leaves(node, request.leaf_count)

    def _end_lease(self, key: GangKey) -> None:
        gang = self._gangs[key]
        for placement in gang.held:
            self._nodes.let_go(placement)
        gang.held.clear()
        for member in [member for member in gang.members if member not in gang.bound]:
            self._nodes.let_go(gang.members.pop(member))
            del self._gang_of[member]
        if not gang.members:
            del self._gangs[key]


def _at(
    request: MemberRequest, placement: Placement, candidate_nodes: Collection[NodeName]
) -> Decision:
    if placement.node in candidate_nodes:
        return Place(request=request, placement=placement)
    return _wait(
        request,
        WaitCode.NODE_NOT_OFFERED,
        f"gang {request.gang} has a place on node {placement.node}, which kube-scheduler does not "
        "offer to this pod; check the node's taints and the pod's node selector",
    )


def _no_room(request: MemberRequest, leaf_counts: Sequence[int], *, found: int) -> Wait:
    sizes = sorted(set(leaf_counts), reverse=True)
    wanted = " and ".join(f"{leaf_counts.count(size)} x {size}" for size in sizes)
    kind = f" of type {request.leaf_type}" if request.leaf_type else ""
    return _wait(
        request,
        WaitCode.NO_ROOM,
        f"gang {request.gang} needs {wanted} leaf cells{kind}, each member's on one node; "
        f"there is room for {found} of {len(leaf_counts)} members now; "
        "it starts when enough of them are free",
    )


def _gang_full(request: MemberRequest, number: int) -> Wait:
    return _wait(
        request,
        WaitCode.GANG_FULL,
        f"gang {request.gang} has {number} members, and all are there already; "
        "raise the gang's size, or end one of them",
    )


def _wait(request: MemberRequest, code: WaitCode, reason: str) -> Wait:
    return Wait(request=request, code=code, reason=reason)
