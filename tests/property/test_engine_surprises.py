"""Decisions that are applied too late, and pods and nodes that are not as they should be.

Whatever comes in: a decision is applied whole or refused whole, nothing raises but ConflictError,
and all invariants hold after each step.
"""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from extender.cells.engine import Engine
from extender.cells.model import Decision, FreeMode, MemberRequest, NodeCell, Place, PlacedMember
from policy.errors import ConflictError
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import Topology
from tests.support.cells.builders import nodes_of
from tests.support.cells.engine_calls import check, observe_bound, recover
from tests.support.cells.random_clusters import clusters
from tests.support.cells.snapshot import snapshot

GANGS = st.integers(0, 5)
MEMBERS = st.integers(0, 2)
LEAVES = st.lists(st.sampled_from([0, 0, 1, 2, 3, 16, 99]), max_size=3).map(tuple)
SIZES = st.sampled_from([(1,), (2,), (1, 1), (2, 2), (1, 2), (1, 1, 1)])


class Surprises(RuleBasedStateMachine):
    """Plays a cluster on which several hands work at once."""

    @initialize(topology=st.one_of(st.none(), clusters(), clusters()))
    def start(self, topology: Topology | None) -> None:
        self.topology = topology
        self.nodes = nodes_of(topology) if topology else [NodeName(f"n{i}") for i in range(3)]
        self.engine = Engine(lease_seconds=10, topology=topology)
        self.kept: list[Decision] = []
        self.requests: dict[GangKey, MemberRequest] = {}
        self.now = 0.0
        for node in self.nodes:
            self.engine.observe_node(NodeCell(name=node, leaf_type=None, leaf_count=4))

    # -- decisions

    @rule(
        number=GANGS,
        member=MEMBERS,
        sizes=SIZES,
        vc=st.sampled_from("ab"),
        priority=st.sampled_from([-1, 0, 5]),
        flags=st.tuples(st.booleans(), st.booleans()),
        is_applied=st.booleans(),
    )
    def ask(
        self,
        *,
        number: int,
        member: int,
        sizes: tuple[int, ...],
        vc: str,
        priority: int,
        flags: tuple[bool, bool],
        is_applied: bool,
    ) -> None:
        key = GangKey("ns", f"g{number}")
        first = self.requests.setdefault(
            key,
            MemberRequest(
                member=PodUid(""),
                gang=key,
                leaf_count=1,
                gang_leaf_counts=sizes,
                vc=VcName(vc),
                priority=priority,
                is_lazy=flags[0],
                free_mode=FreeMode.WHOLE if flags[1] else FreeMode.EACH,
            ),
        )
        request = self.member_of(first, member)
        before = snapshot(self.engine)
        decision = self.engine.plan(request, candidate_nodes=self.nodes)
        assert snapshot(self.engine) == before
        if is_applied:
            self.engine.apply(decision, now=self.now)
        self.kept = [*self.kept[-5:], decision]

    @precondition(lambda self: self.kept)
    @rule(index=st.integers(0, 5))
    def apply_late(self, index: int) -> None:
        """A decision, applied or not, is applied now: all of it or nothing."""
        before = snapshot(self.engine)
        decision = self.kept[index % len(self.kept)]
        try:
            self.engine.apply(decision, now=self.now)
        except ConflictError:
            assert snapshot(self.engine) == before
        else:
            if isinstance(decision, Place):
                there = self.engine.placement(decision.request.member)
                assert there is not None
                assert there.node == decision.placement.node
                assert there.leaf_cells == decision.placement.leaf_cells

    @rule(seconds=st.sampled_from([1, 12]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.engine.expire(now=self.now)

    # -- pods

    @precondition(lambda self: self.requests)
    @rule(number=GANGS, member=MEMBERS, where=st.integers(0, 5), leaves=LEAVES, size=st.booleans())
    def bind(
        self, *, number: int, member: int, where: int, leaves: tuple[int, ...], size: bool
    ) -> None:
        """A pod runs somewhere, and names devices that it may or may not have."""
        request = self.member_of(list(self.requests.values())[number % len(self.requests)], member)
        planned = self.engine.placement(request.member)
        if where == 0 and planned is not None:
            placement = planned
        else:
            placement = Placement(node=self.nodes[where % len(self.nodes)], leaf_cells=leaves)
        if size and not leaves:
            request = replace(request, leaf_count=len(leaves))
        for _ in range(2):  # a pod is seen often
            observe_bound(
                self.engine,
                request,
                node=placement.node,
                leaf_cells=placement.leaf_cells,
                placement=placement,
            )
            self.everything_holds()

    @precondition(lambda self: self.requests)
    @rule(number=GANGS, other=GANGS, member=MEMBERS, where=st.integers(0, 5))
    def bind_to_another_gang(self, number: int, other: int, member: int, where: int) -> None:
        """A pod is seen with a gang that it did not say before."""
        requests = list(self.requests.values())
        mine = self.member_of(requests[number % len(requests)], member)
        theirs = self.member_of(requests[other % len(requests)], member)
        request = replace(theirs, member=mine.member)
        node = self.nodes[where % len(self.nodes)]
        observe_bound(self.engine, request, node=node, leaf_cells=())

    @precondition(lambda self: self.requests)
    @rule(number=GANGS, member=MEMBERS)
    def end(self, number: int, member: int) -> None:
        request = self.member_of(list(self.requests.values())[number % len(self.requests)], member)
        self.engine.forget_member(request.member)

    # -- nodes

    @rule(
        where=st.integers(0, 5),
        leaf_count=st.sampled_from([0, 1, 2, 4, 4, 9]),
        is_healthy=st.booleans(),
    )
    def change_node(self, where: int, leaf_count: int, is_healthy: bool) -> None:
        node = self.nodes[where % len(self.nodes)]
        self.engine.observe_node(
            NodeCell(name=node, leaf_type=None, leaf_count=leaf_count, is_healthy=is_healthy)
        )

    @rule(where=st.integers(0, 5))
    def lose_node(self, where: int) -> None:
        self.engine.forget_node(self.nodes[where % len(self.nodes)])

    @rule(topology=clusters())
    def reconfigure(self, topology: Topology) -> None:
        running = {uid for gang in self.engine.gangs() for uid in gang.bound}
        self.engine.change_topology(topology)
        self.topology, self.nodes = topology, nodes_of(topology)
        assert running == {uid for gang in self.engine.gangs() for uid in gang.bound}
        for node in self.nodes:
            self.engine.observe_node(NodeCell(name=node, leaf_type=None, leaf_count=4))

    @rule()
    def start_again(self) -> None:
        """Another engine is told what runs and what was released."""
        gangs = self.engine._table.gangs
        members = [
            (
                slot.is_bound,
                PlacedMember(
                    request=replace(gangs[gang.gang].request, member=uid, leaf_count=slot.size),
                    placement=gang.members[uid],
                ),
            )
            for gang in self.engine.gangs()
            for uid in gang.members
            if (slot := gangs[gang.gang].slot_of(uid))
        ]
        running = [bound for is_bound, bound in members if is_bound]
        released = [bound for is_bound, bound in members if not is_bound]
        self.engine = Engine(lease_seconds=10, topology=self.topology)
        for node in self.nodes:
            self.engine.observe_node(NodeCell(name=node, leaf_type=None, leaf_count=4))
        lost = recover(self.engine, running, released=released, now=self.now)
        for bound in [*running, *released]:
            has_place = self.engine.placement(bound.request.member) is not None
            assert has_place == (bound.request.member not in lost)

    # -- helpers

    def member_of(self, first: MemberRequest, member: int) -> MemberRequest:
        sizes = first.gang_leaf_counts
        uid = PodUid(f"{first.gang.name}-{member}")
        return replace(first, member=uid, leaf_count=sizes[member % len(sizes)])

    @invariant()
    def everything_holds(self) -> None:
        if hasattr(self, "engine"):
            check(self.engine)


TestSurprises = Surprises.TestCase
TestSurprises.settings = settings(stateful_step_count=30)
