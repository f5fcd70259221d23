"""What goes into the engine and what comes out: requests, decisions, views. Immutable."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from policy.placement import Placement
from policy.submission import DEFAULT_VC, GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import CellAddress, ChainName, PinnedCellId

OPPORTUNISTIC = -1
HIGHEST_PRIORITY = 1000


class ReleaseMode(StrEnum):
    """When the leaf cells of an ended member are free again."""

    EACH = "each"
    """At once."""
    WHOLE = "whole"
    """When the last member has ended; until then they wait for a replacement (HiveD's way)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRequest:
    """One member asks for its place; the engine thinks of its whole gang.

    All fields but `member` and `leaf_count` are the gang's, and the same for all its members.
    """

    member: PodUid
    gang: GangKey
    leaf_count: int
    gang_leaf_counts: tuple[int, ...]
    """Leaf cells of every member of the gang, this one included."""
    gang_min: int | None = None
    """So many members are enough to start; None: all."""
    leaf_type: LeafType | None = None
    vc: VcName = DEFAULT_VC
    priority: int = 0
    """0..1000 guaranteed, -1 opportunistic."""
    pinned: PinnedCellId | None = None
    """Only in this pinned cell of the VC."""
    is_lazy: bool = False
    """As a victim it may be downgraded to opportunistic where that is enough."""
    ignores_candidates: bool = False
    """Only the member that asks must be on a candidate node; else its whole gang."""
    spans_chains: bool = False
    """Its members may lie in several chains, where one alone does not hold them."""
    release: ReleaseMode = ReleaseMode.EACH
    created: float = 0.0
    """When its pod was created, in seconds: of equal victims the youngest are ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCell:
    """A node as it was observed."""

    name: NodeName
    leaf_type: LeafType | None
    leaf_count: int
    is_healthy: bool = True
    bad_leaf_cells: tuple[int, ...] = ()
    """Single devices that are bad on a node that is healthy otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Leaf cells for one member, and the preassigned cell that they count against."""

    chain: ChainName
    leaves: tuple[CellAddress, ...]
    claim: CellAddress | None = None
    """Physical cell that a preassigned cell of the VC is, or will be, mapped to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The member goes to `placement`; `others` are held for members that have not asked yet."""

    request: MemberRequest
    placement: Placement
    others: tuple[Placement, ...] = ()
    seats: tuple[Seat, ...] = ()
    """New seats, the asking member's first; empty if it takes one that its gang has."""
    downgraded: tuple[GangKey, ...] = ()
    """Gangs that are opportunistic from now on (lazy preemption)."""
    cancelled: tuple[GangKey, ...] = ()
    """Gangs whose preemption is overtaken."""


class ReasonCode(StrEnum):
    """Why a gang does not start, or ends, for programs. Stored in the log: codes do not change."""

    NO_ROOM = "no-room"
    VC_FULL = "vc-full"
    BAD_CELLS = "bad-cells"
    NODE_NOT_OFFERED = "node-not-offered"
    GANG_FULL = "gang-full"
    GATHERING = "gathering"
    BEING_PREEMPTED = "being-preempted"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    UNKNOWN_VC = "unknown-vc"
    UNKNOWN_PINNED_CELL = "unknown-pinned-cell"
    UNKNOWN_LEAF_TYPE = "unknown-leaf-type"
    BAD_PRIORITY = "bad-priority"
    BAD_GANG_MIN = "bad-gang-min"
    BAD_LEAF_COUNT = "bad-leaf-count"
    OPPORTUNISTIC_PINNED = "opportunistic-pinned"
    GANG_MISMATCH = "gang-mismatch"
    TOO_LARGE = "too-large"
    SEARCH_ENDED = "search-ended"


Argument = int | str | tuple["Argument", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A code and its arguments for programs, and the sentence that `wording` makes of them.

    Programs compare codes and arguments: texts may be worded otherwise in another version.
    """

    code: ReasonCode
    arguments: Mapping[str, Argument]
    """Names and numbers of the sentence; long lists are cut, and their length is told."""
    text: str
    """The whole sentence, equal for equal states."""
    change: str
    """The end of the sentence: what would have to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The member cannot start now."""

    request: MemberRequest
    reason: Reason
    cancels_own: bool = False
    """Its own preemption came to nothing (bad or withdrawn nodes) and is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """The request can never be served as it is; its owner must change it."""

    request: MemberRequest
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """The gang can start when the victims have ended; its cells are reserved until then."""

    request: MemberRequest
    reason: Reason
    victims: tuple[GangKey, ...]
    """Gangs to be ended, whole; never one that does not help."""
    seats: tuple[Seat, ...] = ()
    """What is to be reserved; empty if it is already."""
    cancelled: tuple[GangKey, ...] = ()


Decision = Place | Wait | Reject | Preempt


class GangState(StrEnum):
    """What a gang that the engine knows is doing."""

    ALLOCATED = "allocated"
    PREEMPTING = "preempting"
    BEING_PREEMPTED = "being-preempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangView:
    """A gang as inspection shows it."""

    gang: GangKey
    size: int
    members: Mapping[PodUid, Placement]
    bound: tuple[PodUid, ...]
    held: tuple[Placement, ...]
    vc: VcName
    priority: int
    state: GangState
    is_guaranteed: bool
    downgraded_by: GangKey | None = None
    asking: tuple[PodUid, ...] = ()
    """Members that wait for the gang's preemption."""
    victims: tuple[GangKey, ...] = ()
