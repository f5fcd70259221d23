"""A cluster whose nodes never stay as they are, for random histories of the engine.

After every change of the topology two engines are compared: one that followed, and one that took
all gangs over on new cells. They are equal but for the numbers of VCs' cells, which are names.
"""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from extender.cells.engine import Engine
from extender.cells.model import FreeMode, MemberRequest, NodeCell, Place, Wait
from extender.cells.observe.reconfiguration import Changed, Effect, GangEffect
from extender.cells.rebuild import Rebuild
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from extender.cells.state.tree import ChainTree
from extender.cells.views.listings import Stepwise, run_to_end
from policy.cluster.document import ClusterDocument, LiveNode
from policy.errors import ConflictError
from policy.parser import DocumentKind, parse_document
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import Topology
from tests.support.cells.engine_calls import check, list_nodes, observe_bound

NODES = st.integers(0, 7)
GANGS = st.integers(0, 5)
SIZES = st.sampled_from([(1,), (2,), (4,), (2, 2), (1, 2), (4, 4), (1, 1, 1)])
RULE = "{levels: [rack, kubernetes.io/hostname], leafResource: gpu, leafTypeLabel: type}"
FLAT = "{levels: [kubernetes.io/hostname], leafResource: gpu, leafTypeLabel: type}"


TWO = f"{{nodeSelector: {{rack: r0}}, {FLAT[1:]}, {FLAT}"
DOMAINS = TWO.replace("{nodeSelector", "{name: east, nodeSelector").replace(
    ", {levels", ", {name: west, levels"
)
"""A node of the first rack is in the east, so nodes change their domain with their rack."""


@st.composite
def documents(draw: st.DrawFn) -> ClusterDocument:
    """Racks, domains or neither; VCs that were promised all kinds of cells, often too many."""
    rule_ = draw(st.sampled_from([RULE, RULE, FLAT, DOMAINS, TWO]))
    levels = ["gpu", "kubernetes.io/hostname", *(["rack"] if rule_ is RULE else [])]
    text = f"apiVersion: cellgate.io/v1\nkind: Cluster\nnodeTopology: [{rule_}]\n"
    text += "virtualClusters:\n"
    for vc in "ab":
        text += f"  {vc}:\n    virtualCells:\n"
        for level in draw(st.lists(st.sampled_from(levels), min_size=1, max_size=2, unique=True)):
            count = draw(st.integers(1, 4))
            leaf_type = draw(st.sampled_from("xxy"))
            domain = f", domain: {draw(st.sampled_from(['east', 'west']))}"
            more = domain if rule_ is DOMAINS else ""
            text += f"    - {{leafType: {leaf_type}, level: {level}, cellNumber: {count}{more}}}\n"
    document = parse_document(text, kind=DocumentKind.CLUSTER)
    assert isinstance(document, ClusterDocument)
    return document


class Following(RuleBasedStateMachine):
    """Plays a cluster that never stays as it is."""

    @initialize(document=documents(), first=st.lists(NODES, unique=True, max_size=8))
    def start(self, document: ClusterDocument, first: list[int]) -> None:
        self.document = document
        self.builder = document.builder()
        self.nodes: dict[NodeName, LiveNode] = {}
        self.requests: dict[GangKey, MemberRequest] = {}
        self.now = 0.0
        self.engine = Engine(
            lease_seconds=10, topology=run_to_end(self.builder.build_stepwise()).topology
        )
        for number in first:
            self.join(
                number=number, rack=number // 3, is_equipped=True, leaf_type="x", healthy=True
            )
        self.follow()

    # -- nodes

    @rule(
        number=NODES,
        rack=st.integers(0, 2),
        is_equipped=st.sampled_from([True, True, True, False]),
        leaf_type=st.sampled_from("xxxy"),
        healthy=st.sampled_from([True, True, False]),
    )
    def join(
        self, *, number: int, rack: int, is_equipped: bool, leaf_type: str, healthy: bool
    ) -> None:
        """A node joins or changes in any way; its cells follow later."""
        name = NodeName(f"n{number}")
        leaf_count = (4 if number % 3 else 2) * is_equipped
        node = LiveNode(
            name=name,
            labels={"rack": f"r{rack}", "type": leaf_type},
            leaf_counts={"gpu": leaf_count},
        )
        self.nodes[name] = node
        self.builder.observe(node)
        cell = NodeCell(
            name=name, leaf_type=LeafType(leaf_type), leaf_count=leaf_count, is_healthy=healthy
        )
        self.engine.observe_node(cell)

    @precondition(lambda self: self.nodes)
    @rule(number=NODES)
    def leave(self, number: int) -> None:
        name = sorted(self.nodes)[number % len(self.nodes)]
        del self.nodes[name]
        self.builder.forget(name)
        self.engine.forget_node(name)

    @rule()
    def follow(self) -> None:
        built = run_to_end(self.builder.build_stepwise())
        assert built == self.document.build(self.nodes.values())
        fresh = Engine(lease_seconds=10)
        expected = rebuilt(self.engine, fresh, built.topology)
        done = run_to_end(self.update(built.topology)).effects
        assert state(self.engine) == state(fresh)
        assert changed(done) == changed(expected, among=done)
        check(self.engine)
        self.probe(fresh)

    def update(self, topology: Topology) -> Stepwise[Changed]:
        """Follow nodes; the cells in use stay as they are until all new ones are complete."""
        before = state(self.engine)
        steps = self.engine.update_topology_stepwise(topology)
        try:
            next(steps)
        except StopIteration as end:
            done: Changed = end.value
            return done
        if self.engine._rebuild is not None:
            assert state(self.engine) == before
        check(self.engine)
        return (yield from steps)

    def probe(self, fresh: Engine) -> None:
        """Who comes next is placed alike, in spite of all that happened before."""
        for vc, priority, sizes in (("a", 0, (2,)), ("b", 5, (4, 4)), ("a", -1, (1, 1))):
            request = MemberRequest(
                member=PodUid("probe"),
                gang=GangKey("ns", "probe"),
                leaf_count=sizes[0],
                gang_leaf_counts=sizes,
                vc=VcName(vc),
                priority=priority,
            )
            theirs = fresh.plan(request, candidate_nodes=self.nodes)
            mine = self.engine.plan(request, candidate_nodes=self.nodes)
            if isinstance(theirs, Place | Wait):
                assert mine == theirs
            else:
                assert type(mine) is type(theirs)

    # -- gangs

    @rule(
        number=GANGS,
        member=st.integers(0, 2),
        sizes=SIZES,
        vc=st.sampled_from("ab"),
        priority=st.sampled_from([-1, 0, 0, 5]),
        is_lazy=st.booleans(),
        is_whole=st.booleans(),
        binds=st.booleans(),
    )
    def ask(
        self,
        *,
        number: int,
        member: int,
        sizes: tuple[int, ...],
        vc: str,
        priority: int,
        is_lazy: bool,
        is_whole: bool,
        binds: bool,
    ) -> None:
        key = GangKey("ns", f"g{number}")
        first = MemberRequest(
            member=PodUid(""),
            gang=key,
            leaf_count=sizes[0],
            gang_leaf_counts=sizes,
            vc=VcName(vc),
            priority=priority,
            is_lazy=is_lazy,
            free_mode=FreeMode.WHOLE if is_whole else FreeMode.EACH,
        )
        first = self.requests.setdefault(key, first)
        index = member % len(first.gang_leaf_counts)
        request = replace(
            first,
            member=PodUid(f"{number}-{index}"),
            leaf_count=first.gang_leaf_counts[index],
        )
        decision = self.engine.plan(request, candidate_nodes=self.nodes)
        try:
            self.engine.apply(decision, now=self.now)
        except ConflictError:
            return
        placement = self.engine.placement(request.member)
        if binds and placement is not None:
            self.bind(request, placement)

    def bind(self, request: MemberRequest, placement: Placement) -> None:
        observe_bound(
            self.engine,
            request,
            node=placement.node,
            leaf_cells=placement.leaf_cells,
            placement=placement,
        )

    @precondition(lambda self: self.requests)
    @rule(number=GANGS, node=NODES)
    def run_elsewhere(self, *, number: int, node: int) -> None:
        """A pod runs where nobody put it, on a node that is idle or not known.

        Where more is used than there is, who is counted depends on who came first: nodes that stay
        are not counted anew, and those of an engine that is built anew are.
        """
        name = NodeName(f"n{node}")
        used = {place.node for gang in self.engine.gangs() for place in gang.members.values()}
        held = {place.node for gang in self.engine.gangs() for place in gang.held}
        if name in used | held:
            return
        first = list(self.requests.values())[number % len(self.requests)]
        request = replace(first, member=PodUid(f"{first.gang.name}-odd"), leaf_count=2)
        self.bind(request, Placement(node=name, leaf_cells=()))

    @rule(number=GANGS, member=st.sampled_from(["0", "1", "2", "odd"]))
    def end(self, *, number: int, member: str) -> None:
        prefix = f"g{number}" if member == "odd" else str(number)
        self.engine.forget_member(PodUid(f"{prefix}-{member}"))
        if self.engine.gang(GangKey("ns", f"g{number}")) is None:
            self.requests.pop(GangKey("ns", f"g{number}"), None)

    @rule(number=GANGS, members=st.sampled_from([(0,), (0, 1, 2)]))
    def tell_to_end(self, *, number: int, members: tuple[int, ...]) -> None:
        """Members are in their grace period from now on, wherever their nodes go."""
        for member in members:
            self.engine.observe_ending(PodUid(f"{number}-{member}"))

    @rule(seconds=st.sampled_from([1, 12]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.engine.expire(now=self.now)

    @invariant()
    def all_invariants_hold(self) -> None:
        if hasattr(self, "engine"):
            check(self.engine)


def rebuilt(engine: Engine, fresh: Engine, topology: Topology) -> list[GangEffect]:
    """Take all gangs of an engine over on new cells."""
    components = engine._new_components(topology)
    rebuild = Rebuild(engine._components, components, gangs=engine._table.gangs)
    fresh._components = components
    return run_to_end(rebuild.steps()).effects


def state(engine: Engine) -> object:
    """All that decisions depend on, without the numbers of VCs' cells."""
    table = engine._table
    return (
        list_nodes(engine),
        {name: (tree.levels, _cells(tree)) for name, tree in sorted(table.trees.items())},
        {key: _gang(gang) for key, gang in table.gangs.items()},
        {
            name: (
                [
                    [cell.address for cell in supply.free(rung.level)]
                    for rung in table.trees[name].levels
                ],
                list(supply.unused),
                supply.is_uniform,
                supply.is_safe(),
            )
            for name, supply in table.supplies.items()
        },
        {
            name: (
                {rung: len(left) for rung, left in vc.unmapped.items()},
                sorted(
                    (c.cell.address, c.virtual.level, dict(c.users)) for c in vc.claims.values()
                ),
                {chain: ranking.promised for chain, ranking in vc.rankings.items()},
            )
            for name, vc in table.vcs.items()
        },
        {node: len(slots) for node, slots in table.incomplete_slots.items()},
        {node: len(slots) for node, slots in table.leafless_slots.items()},
        dict(engine._components.lifecycle.gang_of),
    )


def _cells(tree: ChainTree) -> list[tuple[str, int, int, int]]:
    """All cells in order."""
    cells = [tree.cells[order] for order in sorted(tree.cells)]
    return [(cell.address, cell.leaf_count, cell.idle, cell.bad) for cell in cells]


def _gang(gang: PlacedGang) -> object:
    standing = (gang.request, gang.is_guaranteed, gang.downgraded_by)
    slots = sorted(map(_slot, gang.slots), key=repr)
    return standing, gang.sequence_number, gang.lease_expires, dict(gang.waiting_members), slots


def _slot(slot: MemberSlot) -> object:
    where = replace(slot.reported_placement, vc_cell=None) if slot.reported_placement else None
    return (
        [leaf.address for leaf in slot.leaves],
        slot.claim.cell.address if slot.claim else None,
        (slot.size, slot.member, slot.is_bound, slot.had_member, slot.is_ending),
        (slot.is_foreign, slot.is_reserved, where, slot.reported_devices, slot.missing_leaves),
    )


def changed(
    effects: list[GangEffect], *, among: list[GangEffect] | None = None
) -> Counter[GangEffect]:
    """Effects other than `kept`; a gang that stays ignored is reported only if it was affected."""
    affected = {one.gang for one in (effects if among is None else among)}
    return Counter(
        one
        for one in effects
        if one.effect is not Effect.KEPT
        and (one.effect is not Effect.IGNORED or one.gang in affected)
    )
