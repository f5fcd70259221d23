"""An engine with shorthands for tests: ask, place, bind, end; invariants after every step."""

from extender.cells.engine import Engine
from extender.cells.model import Decision, GangState, GangView, Place
from extender.cells.views.state_views import VcCellView
from policy.placement import Placement
from policy.submission import NodeName, VcName
from policy.topology import CellTypeName, Topology
from tests.support.cells.builders import (
    ClusterBuilder,
    GangBuilder,
    a_cluster,
    a_gang,
    an_engine,
    nodes_of,
)
from tests.support.cells.engine_calls import check, list_vcs, observe_bound


class EngineWorld:
    """One cluster; all its nodes are candidates for every gang."""

    def __init__(
        self, cluster: ClusterBuilder | Topology, *, reclaims_foreign: bool = False
    ) -> None:
        topology = cluster.build() if isinstance(cluster, ClusterBuilder) else cluster
        self.engine: Engine = an_engine(topology, reclaims_foreign=reclaims_foreign)
        self.nodes: list[NodeName] = nodes_of(topology)
        self.now = 0.0

    def ask(
        self, gang: GangBuilder, *, member: int = 0, nodes: list[str] | None = None
    ) -> Decision:
        """Plan for a member; changes nothing."""
        offered = self.nodes if nodes is None else [NodeName(node) for node in nodes]
        decision = self.engine.plan(gang.member(member), candidate_nodes=dict.fromkeys(offered))
        check(self.engine)
        return decision

    def apply(self, decision: Decision) -> None:
        """Apply a decision."""
        self.engine.apply(decision, now=self.now)
        check(self.engine)

    def place(self, gang: GangBuilder) -> Place:
        """Place and bind all members; returns the decision about the first."""
        decisions = []
        for index, request in enumerate(gang.members()):
            decision = self.ask(gang, member=index)
            assert isinstance(decision, Place), decision
            self.apply(decision)
            placement = self.engine.placement(request.member)
            assert placement is not None
            observe_bound(
                self.engine,
                request,
                node=placement.node,
                leaf_cells=placement.leaf_cells,
                placement=placement,
            )
            decisions.append(decision)
        check(self.engine)
        return decisions[0]

    def run(self, gang: GangBuilder, *places: tuple[str, tuple[int, ...]]) -> None:
        """The members of a gang run on these leaf cells; the invariants are not checked."""
        is_guaranteed = gang.request.priority >= 0
        for request, (node, leaf_cells) in zip(gang.members(), places, strict=True):
            placement = Placement(
                node=NodeName(node),
                leaf_cells=leaf_cells,
                vc_cell_type=CellTypeName("node") if is_guaranteed else None,
            )
            observe_bound(
                self.engine,
                request,
                node=placement.node,
                leaf_cells=leaf_cells,
                placement=placement,
            )

    def tell_to_end(self, gang: GangBuilder) -> None:
        """All members are terminating and have not ended yet."""
        for request in gang.members():
            assert self.engine.observe_ending(request.member)
        check(self.engine)

    def end(self, gang: GangBuilder) -> None:
        """All members end."""
        for request in gang.members():
            self.engine.forget_member(request.member)
        check(self.engine)

    def gang(self, name: str) -> GangView | None:
        """A gang as inspection shows it."""
        return next((g for g in self.engine.gangs() if g.gang.name == name), None)

    def state(self, name: str) -> GangState:
        """What a gang is doing."""
        gang = self.gang(name)
        assert gang is not None
        return gang.state

    def nodes_of(self, name: str) -> list[str]:
        """Where the members of a gang are."""
        gang = self.gang(name)
        assert gang is not None
        return [placement.node for placement in gang.members.values()]

    def racks(self, name: str) -> set[str]:
        """The top-level cells that a gang is in."""
        return {node.split("/")[0] for node in self.nodes_of(name)}

    def cells_of(self, vc: str) -> tuple[VcCellView, ...]:
        """The preassigned cells of a VC."""
        return list_vcs(self.engine)[VcName(vc)].cells


def world_with_a_downgraded_gang() -> EngineWorld:
    """Gang lazy lost its cell of VC a to gang high, which is on another node."""
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b"))
    world.place(a_gang("lazy").of(2).lazy())
    world.place(a_gang("high").of(2).at(5))
    gang = world.gang("lazy")
    assert gang is not None
    assert not gang.is_guaranteed
    return world
