"""HiveD's form of the Cluster document: its configuration file, unchanged, which lists every cell.

The models check each value; what values say about each other is checked on the raw data, so that
one wrong value does not hide other mistakes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)
from pydantic.alias_generators import to_camel

from policy.capacity import Capacity, capacity_of
from policy.cluster.document import (
    Builder,
    BuiltCluster,
    ClusterDocument,
    LiveNode,
    NodeCount,
)
from policy.cluster.fields import CellCount, ChildCount, Flag, RequiredText, Text
from policy.cluster.hived_cells import read_cells
from policy.cluster.hived_keys import check_keys
from policy.cluster.hived_types import read_types
from policy.cluster.hived_vcs import read_vcs
from policy.cluster.promises import check_promises
from policy.cluster.safety import Stepwise
from policy.documents.models import API_VERSION, mapping_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import NodeName, VcName
from policy.topology import Topology


def is_hived(data: Mapping[str, Plain]) -> bool:
    """Whether a document is in HiveD's form, by its keys; it needs no apiVersion and kind."""
    return "nodeTopology" not in data and ("physicalCluster" in data or "kind" not in data)


class _Lenient(BaseModel):
    """Unknown keys are checked in `hived_keys`; nothing changes afterwards."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, alias_generator=to_camel)


def _empty_for_nothing(value: object) -> object:
    return {} if value is None else value


class CellTypeEntry(_Lenient):
    """One type of cell above the leaf cells."""

    child_cell_type: RequiredText = Field(
        description="The type of its children; a name that is not in `cellTypes` is a leaf type."
    )
    child_cell_number: ChildCount = Field(description="How many children each such cell has.")
    is_node_level: Flag = Field(
        default=False, description="Whether such a cell is a Kubernetes node."
    )


class PhysicalCellEntry(_Lenient):
    """One physical cell; what is missing is inferred from its type."""

    cell_type: Text = Field(default="", description="Its type; only a top cell needs one.")
    cell_address: Text = Field(
        default="",
        description="Its part of the address: the name of a node, the index of a device on its "
        "node; else a number by its place.",
    )
    pinned_cell_id: Text = Field(
        default="", description="A name by which one virtual cluster can be promised this cell."
    )
    cell_children: "list[_OptionalCell] | None" = Field(
        default=None, description="All its children, or none to infer them from the type."
    )


_OptionalCell = Annotated[PhysicalCellEntry, BeforeValidator(_empty_for_nothing)]


class PhysicalClusterEntry(_Lenient):
    """The cells that exist."""

    cell_types: dict[str, Annotated[CellTypeEntry, BeforeValidator(_empty_for_nothing)]] | None = (
        Field(default=None, description="All types but those of leaf cells, by name.")
    )
    physical_cells: list[_OptionalCell] | None = Field(
        default=None, description="The top cells; those of one type are a chain."
    )


class VirtualCellEntry(_Lenient):
    """So many cells of a type."""

    cell_type: RequiredText = Field(
        description="`chain.….type`: the chain's top type, and the type of the promised cells."
    )
    cell_number: CellCount = Field(default=0, description="How many such cells.")


class PinnedCellEntry(_Lenient):
    """One particular cell."""

    pinned_cell_id: RequiredText = Field(description="The `pinnedCellId` of a physical cell.")


class VirtualClusterEntry(_Lenient):
    """What one virtual cluster is promised."""

    virtual_cells: list[VirtualCellEntry] | None = Field(
        default=None, description="Cells of a type, any of them."
    )
    pinned_cells: list[PinnedCellEntry] | None = Field(
        default=None, description="Particular cells."
    )


class HivedClusterDocument(ClusterDocument):
    """The cluster in HiveD's form."""

    model_config = ConfigDict(extra="ignore")

    api_version: Literal["cellgate.io/v1"] = Field(
        default=API_VERSION, description="May be left out."
    )
    kind: Literal["Cluster"] = Field(default="Cluster", description="May be left out.")
    physical_cluster: Annotated[PhysicalClusterEntry, BeforeValidator(_empty_for_nothing)] = Field(
        default=PhysicalClusterEntry(), description="The cells that exist."
    )
    virtual_clusters: (
        dict[str, Annotated[VirtualClusterEntry, BeforeValidator(_empty_for_nothing)]] | None
    ) = Field(default=None, description="What each virtual cluster is promised, by its name.")

    _compiled: BuiltCluster = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _compile(cls, data: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Compile the raw data, since the model does not keep unknown keys."""
        document = handler(data)
        assert isinstance(data, dict)
        document._compiled = compile_hived(data)
        return document

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield misspelt keys, contradictions, and promises that do not fit."""
        yield from compile_hived(data).problems

    def problems(self, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield the same, without building all cells again."""
        yield from self._compiled.problems

    @property
    def vc_names(self) -> tuple[VcName, ...]:
        """The virtual clusters, sorted."""
        return tuple(sorted(map(VcName, self.virtual_clusters or ())))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Keys and values without effect, or with another effect than expected."""
        return self._compiled.warnings

    def capacity(self, counts: Sequence[NodeCount]) -> Capacity:
        """Return how large gangs can be; nodes make no difference."""
        return capacity_of(self._compiled.topology)

    def builder(self) -> Builder:
        """Return a builder that ignores nodes."""
        return _Listed(self._compiled)


class _Listed:
    def __init__(self, built: BuiltCluster) -> None:
        self._built = built

    def observe(self, node: LiveNode) -> None:
        """Nodes make no difference."""

    def forget(self, name: NodeName) -> None:
        """Nodes make no difference."""

    def build_stepwise(self) -> Stepwise[BuiltCluster]:
        yield
        return self._built


def compile_hived(data: Mapping[str, Plain]) -> BuiltCluster:
    """Read types, cells and virtual clusters, and prove that the promises fit."""
    cluster = mapping_of(data.get("physicalCluster"))
    types = read_types(cluster)
    cells = read_cells(cluster, types)
    vcs = read_vcs(data, cells)
    topology = Topology(chains=cells.chains, vcs=vcs.vcs)
    problems, warnings = check_keys(data)
    problems += [*types.problems, *cells.problems, *vcs.problems]
    # Trees with mistakes prove nothing; promises that could not be read can only need more cells.
    if not types.problems and not cells.problems:
        problems += check_promises(topology)
    return BuiltCluster(
        topology=topology,
        problems=tuple(problems),
        warnings=(*warnings, *cells.warnings, *vcs.warnings),
    )
