"""What both forms of the Cluster document share, and what is built from them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal, Protocol

from pydantic import Field

from policy.capacity import Capacity
from policy.cluster.safety import Stepwise, run_to_end
from policy.documents.models import Document, Strict
from policy.errors import Problem
from policy.quarantine import QuarantineRule
from policy.submission import NodeName, VcName
from policy.topology import Topology

MAX_CELLS: Final = 400_000
"""Physical cells of a cluster, leaf cells included: 10,000 nodes of 8 have 80,000 to 160,000."""
MAX_LEVELS: Final = 32
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node of the cluster, as far as cells are concerned."""

    name: NodeName
    labels: Mapping[str, str] = field(default_factory=dict)
    leaf_counts: Mapping[str, int] = field(default_factory=dict)
    """Devices by the name of their resource, such as `nvidia.com/gpu`."""
    cpu: int | None = None
    """Thousandths of a CPU that it has for pods; None if that is not known."""
    memory: int | None = None
    """Bytes of memory that it has for pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCount:
    """So many nodes with the same devices and the same of those labels that matter."""

    labels: Mapping[str, str] = field(default_factory=dict)
    leaf_counts: Mapping[str, int] = field(default_factory=dict)
    number: int
    cpu: int | None = None
    """Thousandths of a CPU that one of them has at most; None if that is not known of all."""
    memory: int | None = None
    """Bytes of memory that one of them has at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltCluster:
    """A topology whose promises can all be kept, and what the admin should know about it."""

    topology: Topology
    problems: tuple[Problem, ...] = ()
    """Promises that were cut, because they do not fit into the live nodes."""
    warnings: tuple[Problem, ...] = ()


class Builder(Protocol):
    """Builds a cluster again while its nodes join, change and leave."""

    def observe(self, node: LiveNode) -> None:
        """Take note of a node that joined or changed."""

    def forget(self, name: NodeName) -> None:
        """Take note of a node that left."""

    def build_stepwise(self) -> Stepwise[BuiltCluster]:
        """Build the topology of the nodes that are known; unchanged cells are the same objects.

        Nodes that change after the first step have no effect.
        """


class QuarantineEntry(Strict):
    """When a node is quarantined, and for how long."""

    workloads: int = Field(
        default=3, ge=2, le=100, description="How many different workloads must fail on the node."
    )
    submitters: int = Field(
        default=2,
        ge=1,
        le=100,
        description="How many different submitters these workloads must have. With `1`, the "
        "workloads of a single user are enough. All service accounts of a namespace count as one.",
    )
    within_seconds: int = Field(
        default=1800, ge=1, le=_DAY_SECONDS, description="The time in which they must fail."
    )
    fail_within_seconds: int = Field(
        default=60,
        ge=0,
        le=3600,
        description="A container fails at start if it ends with an error so soon.",
    )
    for_seconds: int = Field(
        default=21_600, ge=60, le=30 * _DAY_SECONDS, description="How long the quarantine lasts."
    )

    def build(self) -> QuarantineRule:
        """Return the rule."""
        return QuarantineRule(
            workloads=self.workloads,
            submitters=self.submitters,
            within_seconds=self.within_seconds,
            fail_within_seconds=self.fail_within_seconds,
            for_seconds=self.for_seconds,
        )


class ClusterDocument(Document):
    """The cells of the cluster and the virtual clusters that they are promised to.

    One of its two forms: `policy.cluster.hived` or `policy.cluster.derived`.
    """

    depends_on_nodes: ClassVar[bool] = False
    """Whether `build` must be called again when nodes change."""

    kind: Literal["Cluster"] = Field(description="Always `Cluster`.")
    quarantine: QuarantineEntry | None = Field(
        default=None,
        description="Leaves nodes out of placement on which members of several workloads fail at "
        "start; without it no node is quarantined automatically.",
    )
    foreign: Literal["keep", "reclaim"] = Field(
        default="keep",
        description="What happens to pods that Cellgate did not place, where they use leaf cells "
        "that a guaranteed gang was promised and needs: `keep` lets them run, `reclaim` ends them.",
    )

    @property
    def vc_names(self) -> tuple[VcName, ...]:
        """The virtual clusters, sorted."""
        raise NotImplementedError

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed, but probably a mistake, before any node is known."""
        return ()

    def warnings_for(self, served: Collection[str]) -> tuple[Problem, ...]:
        """Return all warnings, given the leaf resources of pods and nodes that are read."""
        return self.warnings

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The labels of nodes on which cells depend, sorted."""
        return ()

    def check_raised(
        self, before: "ClusterDocument | None", counts: Sequence[NodeCount]
    ) -> list[Problem]:
        """Return the promises that this document raises beyond the nodes that were seen."""
        return []

    def capacity(self, counts: Sequence[NodeCount]) -> Capacity | None:
        """Return how large gangs can be, by the nodes that were seen; None if that is unknown."""
        raise NotImplementedError

    def builder(self) -> Builder:
        """Return a builder that knows no node yet."""
        raise NotImplementedError

    def build(self, nodes: Iterable[LiveNode] = ()) -> BuiltCluster:
        """Build the topology for the cell engine; the same nodes give the same topology."""
        builder = self.builder()
        for node in nodes:
            builder.observe(node)
        return run_to_end(builder.build_stepwise())
