"""A change of what a gang asks for, and what it is good for. Immutable."""

from dataclasses import dataclass
from enum import StrEnum

from policy.queues.alternatives import Alternative
from policy.submission import GangKey, LeafType, VcName


class ChangeKind(StrEnum):
    """What is changed, the smallest change first."""

    LIMIT = "limit"
    """The limit of its run time, in seconds."""
    LEAF_TYPE = "leafType"
    VC = "vc"
    LEAF_CELLS = "leafCellsPerMember"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value of a gang that is replaced by another one."""

    kind: ChangeKind
    before: int | str | None
    """None if the gang states none."""
    after: int | str

    @property
    def alternative(self) -> Alternative | None:
        """The alternative with which a new gang may start in either form; None if there is none."""
        match self.kind:
            case ChangeKind.LEAF_TYPE:
                return Alternative(leaf_type=LeafType(str(self.after)))
            case ChangeKind.VC:
                return Alternative(vc=VcName(str(self.after)))
            case ChangeKind.MEMBERS:
                return Alternative(min_members=int(self.after))
        return None


class StartKind(StrEnum):
    """When a variant starts."""

    NOW = "now"
    PREEMPTING = "preempting"
    """Once the gangs have ended that it preempts."""
    EARLIER = "earlier"
    """Before the gang itself, if the gangs that run end as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A gang with one change, and when it starts."""

    change: Change
    start: StartKind
    victims: int = 0
    """The number of gangs that it preempts."""
    expected: float | None = None
    """When it can start, in seconds since 1970, if that is later than now."""
    reservation: GangKey | None = None
    """The gang or, without namespace, the advance reservation for which its cells are reserved."""
    until: float | None = None
    """When these cells are needed, or a window begins."""
    window: str | None = None
    """The maintenance window before which it ends."""
    takes_own: bool = False
    """Whether it needs what is reserved for the gang itself, which must be deleted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variants:
    """What would let a gang start earlier, the smallest change first."""

    at: float
    """When they were planned, in seconds since 1970."""
    starts_now: bool = False
    """Whether the gang starts as it is: it waits no longer, or the planner has not come to it."""
    expected: float | None = None
    """When the gang can start as it is; None if that is unknown."""
    found: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the owner of a gang may choose instead."""

    leaf_types: tuple[LeafType, ...] = ()
    vcs: tuple[VcName, ...] = ()
