"""Input and output of the engine: requests, nodes, decisions, views of gangs. Immutable."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from policy import classes
from policy.placement import Placement
from policy.pod_resources import Shortage
from policy.submission import DEFAULT_VC, GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import CellAddress, ChainName, PinnedCellId

OPPORTUNISTIC: Final = classes.OPPORTUNISTIC
HIGHEST_PRIORITY: Final = classes.MAX_CELL_PRIORITY
NO_MEMBER: Final = PodUid("")
"""In a request: the place is for a member of a known gang that does not exist yet."""
NO_LIMITS: Final[Mapping[NodeName, int]] = MappingProxyType({})
"""Limits say of some nodes how many idle leaf cells a gang may use there at most."""

Share = tuple[ChainName, PinnedCellId | None]
"""What leaf cells of a VC belong to: its cells in a chain, or one of its pinned cells."""
KeptCells = Mapping[Share, int]
"""How many leaf cells are kept for others, at least."""
NONE_KEPT: Final[KeptCells] = MappingProxyType({})


class Victims(StrEnum):
    """Which victims are looked for if a gang does not fit: some questions need no good ones."""

    BEST = "best"
    """Those whose end does the least damage."""
    ANY = "any"
    """The first that are found; only whether there are any matters."""
    NONE = "none"
    """None: only a place matters, and the reason to wait is not looked for either."""


class FreeMode(StrEnum):
    """When the leaf cells of an ended member are free for other gangs."""

    EACH = "each"
    """At once."""
    WHOLE = "whole"
    """Once the last member has ended; until then they are kept for a replacement, as in HiveD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRequest:
    """A request for a place for one member; the engine plans its whole gang.

    All fields except `member` and `leaf_count` are properties of the gang, equal in all members.
    """

    member: PodUid
    gang: GangKey
    leaf_count: int
    gang_leaf_counts: tuple[int, ...]
    """Leaf cells of every member of the gang, this one included."""
    gang_min: int | None = None
    """The number of members that is enough to start; None for all."""
    leaf_type: LeafType | None = None
    vc: VcName = DEFAULT_VC
    priority: int = 0
    """0..1000 guaranteed, -1 opportunistic."""
    pinned: PinnedCellId | None = None
    """The pinned cell of the VC that the gang must lie in."""
    is_lazy: bool = False
    """Whether the gang, as a victim, may be downgraded to opportunistic where that is enough."""
    ignores_candidates: bool = False
    """Whether only this member, and not its whole gang, must be on candidate nodes."""
    spans_chains: bool = False
    """Whether members may lie in several chains, if no single chain has room for all."""
    free_mode: FreeMode = FreeMode.EACH
    created: float = 0.0
    """When the pod was created, in seconds: of equal victims the youngest are ended."""
    checkpoint_cost: int | None = None
    """Seconds of work that are lost if the gang is preempted, by its owner: of equal victims those
    that lose the least are ended. None, which counts as 0 there, if the owner does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPod:
    """A pod that runs without a placement of the engine, as reasons name it."""

    name: str
    """`namespace/name`."""
    owner: str
    """The user that is charged for it."""
    is_protected: bool = False
    """Whether it is never ended, because it belongs to the cluster itself."""


class KnownSizes(NamedTuple):
    """The sizes of a gang that has places: all its requests must have the same."""

    leaf_counts: tuple[int, ...]
    gang_min: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMember:
    """A member with the placement that its pod reports; empty if the engine did not place it."""

    request: MemberRequest
    placement: Placement
    foreign: ForeignPod | None = None
    """The pod, if the engine did not place it; None in logs of earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCell:
    """A node as it was observed."""

    name: NodeName
    leaf_type: LeafType | None
    leaf_count: int
    is_healthy: bool = True
    is_quarantined: bool = False
    """Whether it is not healthy because it is in quarantine."""
    bad_leaf_cells: tuple[int, ...] = ()
    """Devices that are bad on an otherwise healthy node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Members of a gang that may use the same nodes, where other members may use others."""

    sizes: tuple[int, ...]
    """The leaf cells of each of them."""
    nodes: Collection[NodeName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Leaf cells for one member, and the preassigned cell that they count against."""

    chain: ChainName
    leaves: tuple[CellAddress, ...]
    claim: CellAddress | None = None
    """The physical cell that a preassigned cell of the VC is, or will be, mapped to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The member gets `placement`; `others` are held for members that have not asked yet."""

    request: MemberRequest
    placement: Placement
    others: tuple[Placement, ...] = ()
    seats: tuple[Seat, ...] = ()
    """New seats, this member's first; empty if it takes one that its gang already has."""
    downgraded: tuple[GangKey, ...] = ()
    """Gangs that become opportunistic (lazy preemption)."""
    cancelled: tuple[GangKey, ...] = ()
    """Gangs whose preemption is cancelled in favour of this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """The earliest time at which a gang that waits could start, if others end as expected."""

    time: float
    """When the last gang that it waits for ends; infinite if that is unknown."""
    seats: tuple[Seat, ...]
    """The cells that it would get then."""
    nodes: tuple[NodeName, ...]
    """The node of each seat."""
    waits_for: GangKey | None
    """The gang that ends last of those that it waits for; None if it waits for none."""
    drained: tuple[Seat, ...] = ()
    """Mapped cells of its VC that must become empty first, to be mapped elsewhere."""
    ends: tuple[tuple[GangKey, float], ...] = ()
    """The gangs that it waits for, in the order in which the search removed them, and their ends:
    with these alone the same is found again."""
    is_by_nodes: bool = False
    """Whether the search removed the gangs of one node after the other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovableGang:
    """An opportunistic gang that may be moved for another one."""

    gang: GangKey
    cost: float
    """Leaf-cell seconds of work that are lost by it."""
    nodes: Collection[NodeName]
    """The nodes that it may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Gangs that could run elsewhere, so that another gang starts."""

    gangs: tuple[GangKey, ...]
    cost: float
    """Leaf-cell seconds of work that are lost by all moves."""
    seats: tuple[Seat, ...]
    """The cells that the waiting gang gets then."""
    nodes: tuple[NodeName, ...]
    """The node of each seat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatsView:
    """The state of seats that are kept for a gang."""

    holders: tuple[GangKey, ...]
    """The gangs that hold leaf cells of them, by key."""
    lost: tuple[NodeName, ...] = ()
    """The nodes where leaf cells are bad, gone, or in use by another VC's guaranteed gang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowNote:
    """A window of the Queues document for which alone a gang waits; times as sentences show them.

    It is a maintenance window if it names a node, and an advance reservation otherwise.
    """

    name: str
    begins: str
    ends: str
    node: str = ""


Withheld = GangKey | WindowNote
"""For what cells are withheld from a gang: another gang's reservation, or a window."""


class ReasonCode(StrEnum):
    """Why a gang does not start, or ends, for programs. Stored in the log: codes do not change."""

    NO_ROOM = "no-room"
    VC_FULL = "vc-full"
    BAD_CELLS = "bad-cells"
    FOREIGN_USE = "foreign-use"
    NODE_NOT_OFFERED = "node-not-offered"
    LACKS_RESOURCES = "lacks-resources"
    GANG_FULL = "gang-full"
    MEMBERS_ENDING = "members-ending"
    GATHERING = "gathering"
    QUOTA = "quota"
    OTHER_GATE = "other-gate"
    NO_POD_GROUP = "no-pod-group"
    NO_SCHEDULER = "no-scheduler"
    UNKNOWN_CLASS = "unknown-class"
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
    HELD_AT_BINDING = "held-at-binding"
    BINDING_GIVEN_UP = "binding-given-up"
    UNPLANNED = "unplanned"
    RESERVED = "reserved"
    MINIMUM_RUN = "minimum-run"
    HELD_BY_USER = "held-by-user"
    HELD_BY_ADMIN = "held-by-admin"
    MAINTENANCE = "maintenance"
    RESERVED_AHEAD = "reserved-ahead"


Argument = int | str | tuple["Argument", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A code and its arguments for programs, and the sentence that `wording` makes of them.

    Programs should compare codes and arguments: another version may word the sentence differently.
    """

    code: ReasonCode
    arguments: Mapping[str, Argument]
    """Names and numbers of the sentence. Long lists are cut, and their length is an argument."""
    text: str
    """The whole sentence, equal for equal states."""
    change: str
    """The end of the sentence: what would change the decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The member cannot start now."""

    request: MemberRequest
    reason: Reason
    cancels_own: bool = False
    """Whether the gang's own preemption is cancelled, because its nodes are bad or not offered."""
    lacks_own: bool = False
    """Whether it lacks leaf cells of its own VC, since others of these are reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """The request can never be satisfied; its owner must change it."""

    request: MemberRequest
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    """The gang can start once its victims have ended; its cells are reserved until then."""

    request: MemberRequest
    reason: Reason
    victims: tuple[GangKey, ...]
    """The gangs to end, each of them whole and each of them needed."""
    seats: tuple[Seat, ...] = ()
    """The seats to reserve; empty if they are reserved already."""
    nodes: tuple[NodeName, ...] = ()
    """The node of each of these seats."""
    cancelled: tuple[GangKey, ...] = ()


Decision = Place | Wait | Reject | Preempt


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedForms:
    """The forms of a gang that were tried: as it asks, and by each alternative."""

    form: str
    """The form that a decision is about: `as asked`, or `alternative 1 of 2 (VC shared)`."""
    refused: tuple[tuple[str, str], ...] = ()
    """The forms that were tried beside it, each with why the gang cannot start in it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFacts:
    """What is known about a decision that the engine does not know."""

    shortage: Shortage | None = None
    """What nodes lack beside leaf cells, if only for that the gang waits."""
    reserved_for: Withheld | None = None
    """The gang with the reservation, or the window, for which alone the gang waits."""
    tried: TriedForms | None = None
    """The forms of the gang that were tried, if it has alternatives."""


NO_FACTS: Final = WaitFacts()


class GangState(StrEnum):
    """The state of a gang that the engine knows."""

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
    waiting_members: tuple[PodUid, ...] = ()
    """Members that wait for the victims to end."""
    victims: tuple[GangKey, ...] = ()
