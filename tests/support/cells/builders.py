"""Clusters, gangs and engines in a few words, for tests.

a_cluster("2 racks x 4 nodes x 8").promising("a", rack=1, node=2)
a_gang("bert").in_vc("a").of(4, 8).at(10)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from extender.cells.engine import Engine
from extender.cells.model import FreeMode, MemberRequest, NodeCell
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import (
    Backing,
    CellAddress,
    CellTypeName,
    Chain,
    ChainName,
    Level,
    PhysicalCell,
    PinnedCellId,
    Promise,
    Topology,
    VirtualCluster,
)


@dataclass(frozen=True)
class _Rung:
    name: str
    count: int


class ClusterBuilder:
    """Builds a topology; each chain is described by the counts of its levels, the top first."""

    def __init__(self) -> None:
        self._chains: dict[ChainName, tuple[LeafType, list[_Rung]]] = {}
        self._pins: dict[str, PinnedCellId] = {}
        self._left_out: dict[str, None] = {}
        self._vcs: dict[VcName, VirtualCluster] = {}

    def chain(self, text: str, *, name: str = "", leaf_type: str = "gpu") -> "ClusterBuilder":
        """`2 racks x 4 nodes x 8`; levels without a name lie inside the node."""
        rungs = []
        for index, part in enumerate(text.split(" x ")):
            count, *word = part.split()
            rungs.append(_Rung(word[0].rstrip("s") if word else f"part{index}", int(count)))
        rungs[-1] = _Rung(leaf_type, rungs[-1].count)
        self._chains[ChainName(name or rungs[0].name)] = (LeafType(leaf_type), rungs)
        return self

    def without(self, *addresses: str) -> "ClusterBuilder":
        """Leave out cells, and parents without other children, so that cells of a level differ."""
        self._left_out.update(dict.fromkeys(addresses))
        return self

    def pin(self, address: str, pinned: str) -> "ClusterBuilder":
        """Name the cell at an address."""
        self._pins[address] = PinnedCellId(pinned)
        return self

    def promising(
        self, vc: str, *, pinned: Sequence[str] = (), chain: str = "", **counts: int
    ) -> "ClusterBuilder":
        """Promise a VC a number of cells of each level, by the level's name."""
        name = ChainName(chain or next(iter(self._chains)))
        levels = {rung.cell_type: rung.level for rung in self._levels(name)}
        known = self._vcs.get(VcName(vc), VirtualCluster(name=VcName(vc)))
        promises = tuple(
            Promise(chain=name, level=levels[CellTypeName(key)], count=count)
            for key, count in counts.items()
        )
        self._vcs[VcName(vc)] = replace(
            known,
            promises=known.promises + promises,
            pinned=known.pinned + tuple(map(PinnedCellId, pinned)),
        )
        return self

    def lacking(self, vc: str, level: str, *, promised: int, backed: int) -> "ClusterBuilder":
        """Say that a VC was promised more cells of a level than there are."""
        leaf_type, _ = next(iter(self._chains.values()))
        shortfall = (Backing(leaf_type, level, promised, backed),)
        self._vcs[VcName(vc)] = replace(self._vcs[VcName(vc)], shortfall=shortfall)
        return self

    def promise(self, vc: str, chain: str, *, level: int) -> "ClusterBuilder":
        """Promise a VC one cell of a level."""
        name = ChainName(chain)
        known = self._vcs.get(VcName(vc), VirtualCluster(name=VcName(vc)))
        promises = (*known.promises, Promise(chain=name, level=level, count=1))
        self._vcs[VcName(vc)] = replace(known, promises=promises)
        return self

    def build(self) -> Topology:
        """The topology."""
        chains = {}
        for name, (leaf_type, rungs) in self._chains.items():
            top = len(rungs)
            prefix = "" if len(self._chains) == 1 else f"{name}-"
            cells = self._kept(
                self._cell(f"{prefix}{rungs[0].name[0]}{index}", top, rungs, None)
                for index in range(rungs[0].count)
            )
            chains[name] = Chain(
                name=name, leaf_type=leaf_type, levels=self._levels(name), cells=cells
            )
        return Topology(chains=chains, vcs=self._vcs)

    def _levels(self, name: ChainName) -> tuple[Level, ...]:
        _, rungs = self._chains[name]
        levels: list[Level] = []
        for index, rung in enumerate(reversed(rungs)):
            children = rungs[len(rungs) - index].count if index else 0
            below = levels[-1].leaf_count if levels else 1
            levels.append(
                Level(
                    level=index + 1,
                    cell_type=CellTypeName(rung.name),
                    child_count=children,
                    leaf_count=children * below if index else 1,
                    is_node=rung.name == "node",
                )
            )
        return tuple(levels)

    def _cell(
        self, address: str, level: int, rungs: list[_Rung], node: NodeName | None
    ) -> PhysicalCell:
        rung = rungs[len(rungs) - level]
        if rung.name == "node":
            node = NodeName(address.rsplit("/", 1)[-1] if level == len(rungs) else address)
        children = []
        if level > 1:
            below = rungs[len(rungs) - level + 1]
            for index in range(below.count):
                letter = "" if node else below.name[0]
                children.append(self._cell(f"{address}/{letter}{index}", level - 1, rungs, node))
        return PhysicalCell(
            address=CellAddress(address),
            level=level,
            children=self._kept(children),
            node=node,
            device=_device(address, node) if level == 1 else None,
            pinned=self._pins.get(address),
        )

    def _kept(self, cells: Iterable[PhysicalCell]) -> tuple[PhysicalCell, ...]:
        return tuple(
            cell
            for cell in cells
            if cell.address not in self._left_out and (cell.children or cell.level == 1)
        )


def _device(address: str, node: NodeName | None) -> int:
    """Device index on the node: leaves are numbered by their path below it."""
    assert node is not None
    path = address[len(node) + 1 :] if address.startswith(node) else address.split(node + "/")[1]
    number = 0
    for part in path.split("/"):
        number = number * 16 + int(part)
    return number


def a_cluster(text: str, *, name: str = "", leaf_type: str = "gpu") -> ClusterBuilder:
    """Begin with one chain."""
    return ClusterBuilder().chain(text, name=name, leaf_type=leaf_type)


def an_engine(
    cluster: ClusterBuilder | Topology, *, lease_seconds: float = 60, reclaims_foreign: bool = False
) -> Engine:
    """An engine with healthy nodes only."""
    topology = cluster.build() if isinstance(cluster, ClusterBuilder) else cluster
    engine = Engine(
        lease_seconds=lease_seconds, topology=topology, reclaims_foreign=reclaims_foreign
    )
    for node in nodes_of(topology):
        engine.observe_node(a_node_cell(node))
    return engine


def a_node_cell(
    name: str,
    *,
    is_healthy: bool = True,
    is_quarantined: bool = False,
    bad: tuple[int, ...] = (),
) -> NodeCell:
    """A node as the cluster reports it."""
    return NodeCell(
        name=NodeName(name),
        leaf_type=None,
        leaf_count=8,
        is_healthy=is_healthy and not is_quarantined,
        is_quarantined=is_quarantined,
        bad_leaf_cells=bad,
    )


def without_node(topology: Topology, address: str) -> Topology:
    """The same with one node less in a rack: as in clusters that are derived from live nodes."""
    chains = {
        name: replace(
            chain,
            cells=tuple(
                replace(top, children=tuple(c for c in top.children if c.address != address))
                for top in chain.cells
            ),
        )
        for name, chain in topology.chains.items()
    }
    return replace(topology, chains=chains)


def nodes_of(topology: Topology) -> list[NodeName]:
    """All node names, in order."""
    found: dict[NodeName, None] = {}

    def walk(cell: PhysicalCell) -> None:
        if cell.node is not None:
            found[cell.node] = None
        for child in cell.children:
            walk(child)

    for chain in topology.chains.values():
        for cell in chain.cells:
            walk(cell)
    return list(found)


@dataclass(frozen=True)
class GangBuilder:
    """Builds the requests of a gang's members."""

    request: MemberRequest

    def in_vc(self, vc: str) -> "GangBuilder":
        return self._with(vc=VcName(vc))

    def at(self, priority: int) -> "GangBuilder":
        return self._with(priority=priority)

    def of(self, *sizes: int) -> "GangBuilder":
        """Leaf cells of each member."""
        return self._with(gang_leaf_counts=sizes, leaf_count=sizes[0])

    def times(self, count: int, size: int) -> "GangBuilder":
        """A number of members of one size."""
        return self.of(*(size,) * count)

    def lazy(self) -> "GangBuilder":
        return self._with(is_lazy=True)

    def pinned(self, pinned: str) -> "GangBuilder":
        return self._with(pinned=PinnedCellId(pinned))

    def typed(self, leaf_type: str) -> "GangBuilder":
        return self._with(leaf_type=LeafType(leaf_type))

    def at_least(self, count: int) -> "GangBuilder":
        return self._with(gang_min=count)

    def whole(self) -> "GangBuilder":
        return self._with(free_mode=FreeMode.WHOLE)

    def spanning(self) -> "GangBuilder":
        """May lie in several chains."""
        return self._with(spans_chains=True)

    def losing(self, seconds: int) -> "GangBuilder":
        """How much work its owner says that a preemption costs."""
        return self._with(checkpoint_cost=seconds)

    def created(self, seconds: float) -> "GangBuilder":
        """When its pods were created."""
        return self._with(created=seconds)

    def strict(self) -> "GangBuilder":
        """All members on candidate nodes."""
        return self._with(ignores_candidates=False)

    def member(self, index: int = 0) -> MemberRequest:
        """The request of one member."""
        return replace(
            self.request,
            member=PodUid(f"{self.request.gang.name}-{index}"),
            leaf_count=self.request.gang_leaf_counts[index],
        )

    def members(self) -> list[MemberRequest]:
        return [self.member(index) for index in range(len(self.request.gang_leaf_counts))]

    def _with(self, **changes: object) -> "GangBuilder":
        return GangBuilder(replace(self.request, **changes))  # type: ignore[arg-type]


def a_gang(name: str) -> GangBuilder:
    """A gang of one member with one leaf cell in VC a, at priority 0."""
    return GangBuilder(
        MemberRequest(
            member=PodUid(f"{name}-0"),
            gang=GangKey("ns", name),
            leaf_count=1,
            gang_leaf_counts=(1,),
            vc=VcName("a"),
        )
    )
