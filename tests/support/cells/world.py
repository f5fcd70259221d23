"""An engine with shorthands for tests: ask, place, bind, end; invariants after every step."""

from extender.cells.engine import Engine
from extender.cells.model import Decision, GangState, GangView, Place, Placement
from extender.cells.views.state_views import VcCellView
from policy.submission import NodeName, VcName
from policy.topology import CellTypeName, Topology
from tests.support.cells.builders import ClusterBuilder, GangBuilder, an_engine, nodes_of


class World:
    """One cluster, all of whose nodes are offered to everybody."""

    def __init__(self, cluster: ClusterBuilder | Topology) -> None:
        topology = cluster.build() if isinstance(cluster, ClusterBuilder) else cluster
        self.engine: Engine = an_engine(topology)
        self.nodes: list[NodeName] = nodes_of(topology)
        self.now = 0.0

    def ask(
        self, gang: GangBuilder, *, member: int = 0, nodes: list[str] | None = None
    ) -> Decision:
        """Plan for a member; nothing happens."""
        offered = self.nodes if nodes is None else [NodeName(node) for node in nodes]
        decision = self.engine.plan(gang.member(member), candidate_nodes=dict.fromkeys(offered))
        self.engine.check()
        return decision

    def apply(self, decision: Decision) -> None:
        """Make a decision true."""
        self.engine.apply(decision, now=self.now)
        self.engine.check()

    def place(self, gang: GangBuilder) -> Place:
        """Place and bind all members; returns the decision about the first."""
        decisions = []
        for index, request in enumerate(gang.members()):
            decision = self.ask(gang, member=index)
            assert isinstance(decision, Place), decision
            self.apply(decision)
            placement = self.engine.placement(request.member)
            assert placement is not None
            self.engine.observe_bound(
                request,
                node=placement.node,
                leaf_cells=placement.leaf_cells,
                placement=placement,
            )
            decisions.append(decision)
        self.engine.check()
        return decisions[0]

    def run(self, gang: GangBuilder, *places: tuple[str, tuple[int, ...]]) -> None:
        """The members of a gang run on these leaf cells, whoever put them there; not checked."""
        is_guaranteed = gang.request.priority >= 0
        for request, (node, leaf_cells) in zip(gang.members(), places, strict=True):
            placement = Placement(
                node=NodeName(node),
                leaf_cells=leaf_cells,
                vc_cell_type=CellTypeName("node") if is_guaranteed else None,
            )
            self.engine.observe_bound(
                request, node=placement.node, leaf_cells=leaf_cells, placement=placement
            )

    def tell_to_end(self, gang: GangBuilder) -> None:
        """All members are told to end, and have not ended yet."""
        for request in gang.members():
            assert self.engine.observe_ending(request.member)
        self.engine.check()

    def end(self, gang: GangBuilder) -> None:
        """All members end."""
        for request in gang.members():
            self.engine.forget_member(request.member)
        self.engine.check()

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
        return self.engine.vcs()[VcName(vc)].cells
