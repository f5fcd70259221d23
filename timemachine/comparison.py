"""What two runs of the same arrivals say, side by side: the input of table, JSON and HTML report.

`before` is the run under the recorded policies, or under the first of the variants; `after` is the
run under what was changed. Times are in seconds, moments in seconds since 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Grouping(StrEnum):
    """By what gangs are put together in tables and pictures."""

    VC = "vc"
    GROUP = "group"
    CLASS = "class"
    SIZE = "size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long the gangs of one row waited for their first start."""

    gangs: int
    """Those that were admitted, the ones that never started included."""
    mean: float
    median: float
    p95: float
    longest: float
    never_started: int = 0
    """Gangs that still waited at the end, and gangs that can never start.

    The wait of the former until the end counts; the latter have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsePoint:
    """How the cluster was used in one stretch of time."""

    at: float
    """When the stretch begins."""
    used: float
    """Leaf cells in use, on average."""
    waiting: float
    """Leaf cells wanted by gangs that waited, on average."""
    by_vc: Mapping[str, float] = field(default_factory=dict)
    """Leaf cells in use, on average, by VC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run."""

    title: str
    leaf_cells: int
    """The leaf cells of the cluster, at most."""
    all: Waits
    by: Mapping[Grouping, Mapping[str, Waits]]
    """The rows of each table, in the order in which they are shown."""
    use: Sequence[UsePoint]
    utilisation: float
    """The share of leaf-cell-time that was in use, from the first arrival to the last."""
    fragmentation: float
    """The average share of idle leaf cells that are not on wholly idle nodes."""
    refused: int
    lowered: int
    preemptions: int
    longest_head_wait: float
    """The longest time that one gang was first of its pool and did not start: starvation."""


class ChangeKind(StrEnum):
    """How one gang fared differently."""

    REFUSED = "refused"
    ADMITTED = "admitted"
    LOWERED = "lowered"
    RAISED = "raised"
    PREEMPTED = "preempted"
    NOT_PREEMPTED = "not-preempted"
    PLACED_ELSEWHERE = "placed-elsewhere"
    STARTS_EARLIER = "starts-earlier"
    STARTS_LATER = "starts-later"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangChange:
    """One gang that fared differently."""

    gang: str
    user: str
    vc: str
    leaf_cells: int
    submitted: float
    kind: ChangeKind
    seconds: float
    """By how much it starts later; negative: earlier."""
    before: str
    """What happened to it, in words: `class prod, started after 3 min on a1, a2`."""
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """A VC that waited longer among others than alone with its promise."""

    vc: str
    mean_seconds: float
    """By how much the mean wait is longer."""
    p95_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs of the same arrivals."""

    source: str
    """Where the arrivals are from, in words: `decision log, 2026-03-01T00:00:00Z to …`."""
    begin: float
    end: float
    gangs: int
    changed: Sequence[str]
    """What differs between both sides, in words, one line each."""
    before: Side
    after: Side
    counts: Mapping[ChangeKind, int]
    """How many gangs fared differently, by how."""
    gains: Sequence[GangChange]
    """The gangs that gain most, at most 100, largest gain first."""
    losses: Sequence[GangChange]
    """The gangs that lose most, at most 100, largest loss first."""
    others: Sequence[GangChange]
    """Other differences, at most 100 of each kind, in the order of submission."""
    anomalies: Sequence[Anomaly] = ()
    """VCs that are worse off than alone after the change, if that was asked for."""
    unknown: Sequence[str] = ()
    """What a simulation cannot know, in words, with numbers: how many run times are predicted."""
