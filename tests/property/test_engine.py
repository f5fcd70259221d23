"""Random histories of arrivals, ends, expiries and node changes: the invariants always hold."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, Place
from policy.submission import GangKey, NodeName, PodUid

NODES = [NodeName(f"n{index}") for index in range(4)]
LEAVES = 4


class EngineHistory(RuleBasedStateMachine):
    """Plays kube-scheduler and the cluster at random."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(lease_seconds=10)
        self.now = 0.0
        self.requests: dict[PodUid, MemberRequest] = {}
        for name in NODES:
            self.engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))

    @rule(
        gang=st.integers(0, 4),
        sizes=st.lists(st.integers(1, LEAVES), min_size=1, max_size=3),
        member=st.integers(0, 3),
        nodes=st.lists(st.sampled_from(NODES), unique=True),
    )
    def ask(self, gang: int, sizes: list[int], member: int, nodes: list[NodeName]) -> None:
        uid = PodUid(f"g{gang}-{member}")
        request = self.requests.get(uid) or MemberRequest(
            member=uid,
            gang=GangKey("ns", f"g{gang}"),
            leaf_count=sizes[0],
            gang_leaf_counts=tuple(sizes),
        )
        before = self.engine.gangs(), self.engine.nodes()
        decision = self.engine.plan(request, candidate_nodes=nodes)
        assert (self.engine.gangs(), self.engine.nodes()) == before
        assert self.engine.plan(request, candidate_nodes=nodes) == decision
        self.engine.apply(decision, now=self.now)
        if isinstance(decision, Place):
            assert decision.placement.node in nodes
            assert len(decision.placement.leaf_cells) == request.leaf_count
            self.requests[uid] = request

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        request = self.requests[data.draw(st.sampled_from(sorted(self.requests)))]
        if placement := self.engine.placement(request.member):
            self.engine.observe_bound(request, node=placement.node, leaf_cells=placement.leaf_cells)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.requests)))
        del self.requests[uid]
        self.engine.forget_member(uid)

    @rule(seconds=st.floats(0, 12))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.engine.expire(now=self.now)

    @rule(node=st.sampled_from(NODES), is_healthy=st.booleans())
    def change_node(self, node: NodeName, is_healthy: bool) -> None:
        self.engine.observe_node(
            NodeCell(name=node, leaf_type=None, leaf_count=LEAVES, is_healthy=is_healthy)
        )

    @rule(node=st.sampled_from(NODES))
    def lose_node(self, node: NodeName) -> None:
        self.engine.forget_node(node)

    @invariant()
    def no_leaf_cell_is_held_twice(self) -> None:
        claims = [
            (placement.node, leaf)
            for gang in self.engine.gangs()
            for placement in (*gang.members.values(), *gang.held)
            for leaf in placement.leaf_cells
        ]
        assert len(claims) == len(set(claims))

    @invariant()
    def gangs_and_nodes_agree(self) -> None:
        by_gang = {
            (placement.node, leaf): member
            for gang in self.engine.gangs()
            for member, placement in (
                *gang.members.items(),
                *((None, held) for held in gang.held),
            )
            for leaf in placement.leaf_cells
        }
        by_node = {
            (cell.name, leaf): member
            for cell, holders in self.engine.nodes()
            for leaf, member in holders.items()
        }
        assert by_gang == by_node

    @invariant()
    def no_gang_has_more_places_than_members(self) -> None:
        for gang in self.engine.gangs():
            assert len(gang.members) + len(gang.held) <= gang.size
            assert gang.members


TestEngineHistory = EngineHistory.TestCase
