"""The derived form of the Cluster document: cells are built from the labels of live nodes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from pydantic import Field

from policy.capacity import Capacity
from policy.cluster.derived_cells import (
    MAX_DEVICES,
    CellBuilder,
    DomainField,
    LabelKey,
    NodeTopologyEntry,
)
from policy.cluster.derived_promises import Wish, keep_promises_stepwise
from policy.cluster.document import (
    MAX_CELLS,
    MAX_LEVELS,
    Builder,
    BuiltCluster,
    ClusterDocument,
    NodeCount,
)
from policy.cluster.domains import check_domains, find_ambiguous, find_doubtful
from policy.cluster.fields import entries_of, named_entries_of
from policy.cluster.safety import Stepwise
from policy.cluster.seen_nodes import (
    ChainKey,
    ExpectedNodes,
    SeenChain,
    check_raised,
    find_capacity,
    find_chains,
    find_largest,
    label_keys,
)
from policy.documents.models import Strict, items_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import LeafType, VcName
from policy.topology import DomainName
from policy.wording import join_path, listing, quote

NODE_LABEL: Final = "kubernetes.io/hostname"
"""The level of a node. Its cells have the node's name, which may differ from the label."""
MAX_RULES: Final = 100


class DerivedCellEntry(Strict):
    """So many cells of a level."""

    leaf_type: LabelKey = Field(description="The type of their leaf cells.")
    level: LabelKey = Field(description="A label key of `levels`, or the leaf resource.")
    cell_number: int = Field(ge=0, le=MAX_CELLS, description="How many such cells.")
    domain: DomainField = Field(
        default="",
        description="The `name` of the entry of `nodeTopology` whose cells they are; required "
        "where several entries could be meant.",
    )


class ExpectedNodesEntry(Strict):
    """Nodes that will be added: promises may count on them."""

    leaf_type: LabelKey = Field(description="The type of their leaf cells.")
    nodes: int = Field(ge=1, le=MAX_CELLS, description="How many such nodes.")
    leaf_cells: int = Field(ge=1, le=MAX_DEVICES, description="Leaf cells of each node.")
    domain: DomainField = Field(
        default="",
        description="The domain that they will join; without it, they count for every entry of "
        "`nodeTopology`.",
    )


class DerivedVcEntry(Strict):
    """What one virtual cluster is promised."""

    virtual_cells: list[DerivedCellEntry] = Field(
        default=[], description="Cells of a level, any of them."
    )


class DerivedClusterDocument(ClusterDocument):
    """The cluster as its nodes describe it."""

    depends_on_nodes: ClassVar[bool] = True
    node_topology: list[NodeTopologyEntry] = Field(
        min_length=1,
        max_length=MAX_RULES,
        description="How nodes become cells; for each leaf resource, the first entry that selects "
        "a node counts.",
    )
    virtual_clusters: dict[str, DerivedVcEntry] = Field(
        default={}, description="What each virtual cluster is promised, by its name."
    )
    expected_nodes: list[ExpectedNodesEntry] = Field(
        default=[],
        max_length=MAX_RULES,
        description="Nodes that will be added. A promise that a change raises beyond the nodes of "
        "the last seven days is refused, unless these back it.",
    )

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield levels in a wrong order, and promises of unknown levels or unclear domains."""
        for place, entry in entries_of(data, "nodeTopology"):
            yield from _level_problems(place, items_of(entry, "levels"))
        yield from _unknown_levels(data)
        yield from check_domains(data)

    @property
    def vc_names(self) -> tuple[VcName, ...]:
        """The virtual clusters, sorted."""
        return tuple(sorted(map(VcName, self.virtual_clusters)))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Promises that are clear only as long as one entry has nodes of their leaf type."""
        return tuple(find_doubtful(list(self._wishes()), self.node_topology))

    def warnings_for(self, served: Collection[str]) -> tuple[Problem, ...]:
        """Return the warnings, and the entries that build no cells: their resource is not read."""
        known = listing(served := sorted(served))
        unserved = [
            Problem(
                join_path(("nodeTopology", place, "leafResource")),
                f"{quote(entry.leaf_resource)} is not served: cells are built of {known} only",
            )
            for place, entry in enumerate(self.node_topology)
            if entry.leaf_resource not in served
        ]
        return (*unserved, *self.warnings)

    def builder(self) -> Builder:
        """Return a builder of the cells of live nodes."""
        return _DerivedBuilder(
            CellBuilder(self.node_topology),
            wishes=list(self._wishes()),
            vcs=[VcName(name) for name in self.virtual_clusters],
        )

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The labels of nodes on which cells depend, sorted."""
        return label_keys(self.node_topology)

    def check_raised(
        self, before: ClusterDocument | None, counts: Sequence[NodeCount]
    ) -> list[Problem]:
        """Return promises that are ambiguous, or raised beyond the nodes that were seen."""
        wishes = list(self._wishes())
        ambiguous = list(find_ambiguous(wishes, self.node_topology, counts))
        if ambiguous:
            return ambiguous
        earlier = before if isinstance(before, DerivedClusterDocument) else None
        chains = self.seen_chains(counts)
        if not chains:
            return []
        old = list(earlier._wishes()) if earlier else []
        return list(check_raised(wishes, before=old, chains=chains))

    def capacity(self, counts: Sequence[NodeCount]) -> Capacity | None:
        """Return how large gangs can be, by the nodes that were seen; None if none was."""
        chains = self.seen_chains(counts)
        if not chains:
            return None
        capacity = find_capacity(list(self._wishes()), chains)
        # What expected nodes have beside devices is not known.
        return capacity if self.expected_nodes else replace(capacity, largest=find_largest(counts))

    def seen_chains(self, counts: Sequence[NodeCount]) -> dict[ChainKey, SeenChain]:
        """Return the chains of the nodes that were seen or are expected; none if none was seen."""
        return find_chains(
            self.node_topology,
            counts,
            expected=[
                ExpectedNodes(
                    leaf_type=LeafType(one.leaf_type),
                    leaf_cells=one.leaf_cells,
                    number=one.nodes,
                    domain=DomainName(one.domain),
                )
                for one in self.expected_nodes
            ],
            leaf_types=sorted({wish.leaf_type for wish in self._wishes()}),
        )

    def _wishes(self) -> Iterator[Wish]:
        for name, vc in self.virtual_clusters.items():
            for place, entry in enumerate(vc.virtual_cells):
                yield Wish(
                    vc=VcName(name),
                    leaf_type=LeafType(entry.leaf_type),
                    level=entry.level,
                    count=entry.cell_number,
                    domain=DomainName(entry.domain),
                    path=join_path(("virtualClusters", name, "virtualCells", place)),
                )


class _DerivedBuilder:
    def __init__(
        self, cells: CellBuilder, *, wishes: Sequence[Wish], vcs: Sequence[VcName]
    ) -> None:
        self._wishes = wishes
        self._vcs = vcs
        self._cells = cells
        self.observe = cells.observe
        self.forget = cells.forget

    def build_stepwise(self) -> Stepwise[BuiltCluster]:
        cells = self._cells.build()
        yield
        return (yield from keep_promises_stepwise(cells, self._wishes, vcs=self._vcs))


def _level_problems(place: int, levels: list[Plain]) -> Iterator[Problem]:
    path = ("nodeTopology", place, "levels")
    first: dict[str, int] = {}
    for index, key in enumerate(levels):
        if isinstance(key, str) and first.setdefault(key, index) != index:
            yield Problem(
                join_path((*path, index)), f"duplicate of {join_path((*path, first[key]))}"
            )
    if levels and levels[-1] != NODE_LABEL:
        yield Problem(join_path(path), f"the last level must be {NODE_LABEL}, the node")


def _unknown_levels(data: Mapping[str, Plain]) -> Iterator[Problem]:
    known: dict[str, None] = {}
    for _, entry in entries_of(data, "nodeTopology"):
        keys = [*items_of(entry, "levels"), entry.get("leafResource")]
        known |= dict.fromkeys(key for key in keys if key and isinstance(key, str))
    for name, vc in named_entries_of(data, "virtualClusters"):
        for place, cell in entries_of(vc, "virtualCells"):
            level = cell.get("level")
            if known and level and isinstance(level, str) and level not in known:
                path = join_path(("virtualClusters", name, "virtualCells", place, "level"))
                shown = listing([quote(key) for key in list(known)[:MAX_LEVELS]])
                yield Problem(path, f"{quote(level)} is not one of the levels {shown}")
