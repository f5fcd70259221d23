"""What goes into the engine and what comes out."""

from dataclasses import dataclass
from enum import StrEnum

from policy.submission import GangKey, LeafType, NodeName, PodUid


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRequest:
    """One member asks for its place; the engine thinks of its whole gang."""

    member: PodUid
    gang: GangKey
    leaf_count: int
    gang_leaf_counts: tuple[int, ...]
    """Leaf cells of every member of the gang, this one included."""
    leaf_type: LeafType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The leaf cells chosen for one member: indices of devices on one node."""

    node: NodeName
    leaf_cells: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCell:
    """A node as the engine sees it."""

    name: NodeName
    leaf_type: LeafType | None
    leaf_count: int
    is_healthy: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The member goes to `placement`; `others` are held for members that have not asked yet."""

    request: MemberRequest
    placement: Placement
    others: tuple[Placement, ...] = ()
    given_up: tuple[Placement, ...] = ()
    """Places of another size that were held for the gang and are not needed any more."""


class WaitCode(StrEnum):
    """Why a member waits, for machines."""

    NO_ROOM = "no-room"
    NODE_NOT_OFFERED = "node-not-offered"
    GANG_FULL = "gang-full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The member cannot start now; `reason` is a stable sentence for its owner."""

    request: MemberRequest
    code: WaitCode
    reason: str


Decision = Place | Wait
