"""What is played: gangs that arrive, the policies and cluster that they meet, how each fared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.cells.model import NodeCell
from policy.policy import Policy
from policy.rules.decision import Outcome
from policy.submission import (
    DEFAULT_VC,
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    NodeName,
    UserName,
    VcName,
)
from policy.topology import Topology
from timemachine.comparison import UsePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A gang as its submitter asked for it, and how long it ran."""

    gang: GangKey
    submitted: float
    """Seconds since 1970."""
    run_seconds: float
    """How long it runs once it has started."""
    sizes: tuple[int, ...]
    """The leaf cells of each member."""
    user: UserName
    requested_class: ClassName
    gang_min: int | None = None
    groups: tuple[GroupName, ...] = ()
    charged_group: GroupName | None = None
    """The group that its label names."""
    vc: VcName = DEFAULT_VC
    leaf_type: LeafType | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    cpu_millis: int = 0
    memory_bytes: int = 0
    """What all members with leaf cells request together."""
    limit_seconds: float | None = None
    """The longest that it may run, by its own deadline."""
    expected_seconds: float | None = None
    """How long its owner expected it to run."""
    checkpoint_cost: int | None = None
    is_predicted: bool = False
    """Whether its run time is predicted: it was refused, or has not ended."""
    is_counted: bool = True
    """Whether it counts in figures: not where the cluster of a trace fills and empties."""

    @property
    def leaf_cells(self) -> int:
        """The leaf cells of the whole gang."""
        return sum(self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The policies and the cluster that arrivals meet."""

    title: str
    policy: Policy
    topology: Topology | None
    """None without a Cluster document: then every gang may use every node."""
    nodes: Sequence[NodeCell]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """How one gang fared."""

    arrival: Arrival
    outcome: Outcome
    """What rules and quotas decided at its submission."""
    class_name: ClassName
    """The class that it got."""
    reason: str = ""
    """Why it was refused or lowered, or can never start, in the words of the product."""
    group: GroupName | None = None
    """The group that is charged; None if there is none, or before rules and quotas were asked."""
    can_start: bool = True
    """Whether it could start while nothing else runs; a gang that cannot is not planned."""

    is_lowered: bool = False
    """Whether it got a lower class than it asked for."""

    @property
    def is_admitted(self) -> bool:
        """Whether it was not refused; it may have waited for quota."""
        return self.outcome is not Outcome.REFUSED

    started: float | None = None
    """When it first started; None if it never did."""
    ended: float | None = None
    nodes: tuple[NodeName, ...] = ()
    """Where it first started."""
    preemptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """All arrivals, played once."""

    world: World
    fates: Sequence[Fate]
    """In the order of submission."""
    begin: float
    end: float
    use: Sequence[UsePoint]
    utilisation: float
    fragmentation: float
    longest_head_wait: float

    def wait(self, fate: Fate) -> float:
        """Return how long a gang waited for its first start, or until the end."""
        started = self.end if fate.started is None else fate.started
        return max(0.0, started - fate.arrival.submitted)
