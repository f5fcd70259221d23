"""Reservations, and what became of the start that each promised. Immutable."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from extender.cells.model import MemberRequest, Seat, Shadow
from policy.queues.pools import Pool
from policy.submission import GangKey, NodeName, VcName


def entry_key(name: str) -> GangKey:
    """Return the key under which an advance reservation is kept: no gang has such a key."""
    return GangKey("", name)


class SlipCause(StrEnum):
    """Why a gang does not start when it was promised to. Stored: values do not change."""

    OVERRUN = "overrun"
    """A gang that holds reserved cells runs longer than expected."""
    CELLS_LOST = "cells-lost"
    """Reserved cells are bad or gone, or another VC needs them for its promise."""


class ReservationEnd(StrEnum):
    """How a reservation ended. Stored: values do not change."""

    STARTED = "started"
    """The gang has its places."""
    GONE = "gone"
    """The gang has no pods any more."""
    NOT_WAITING = "not-waiting"
    """The gang does not wait for cells any more: members are missing, or it is held."""
    UNUSED = "unused"
    """Its cells are free, but the gang waits for something else."""
    OVER = "over"
    """The time of the advance reservation is over."""
    WITHDRAWN = "withdrawn"
    """The document does not have the advance reservation any more, or not in this form."""
    OUTRANKED = "outranked"
    """Another gang is ahead, and reservations are not sticky."""
    NO_ROOM = "no-room"
    """Cells were lost, and the gang would not even fit once others have ended."""
    CHANGED = "changed"
    """The gang asks for other cells than those that are reserved."""
    TOO_MANY = "too-many"
    """The document allows fewer reservations in each pool than there are."""
    REPLACED = "replaced"
    """The gang has another reservation: this one was not known when that was made."""
    WRONG_CLOCK = "wrong-clock"
    """It was made at a time that is yet to come: its deadline means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A promised start that was put off."""

    at: float
    """When that became known, in seconds since 1970."""
    before: float | None
    """The start that was promised until then; None if no time was known."""
    promised: float | None
    """The start that is promised since then."""
    cause: SlipCause
    gang: GangKey | None = None
    """The gang that runs longer."""
    nodes: tuple[NodeName, ...] = ()
    """The nodes whose cells are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Concrete cells that are kept for a gang until it starts, or for an entry of the document.

    Times are seconds since 1970.
    """

    gang: GangKey
    """The gang that owns it; for an advance reservation, `entry_key` of its name."""
    pool: Pool
    domain: VcName | None
    """The VC whose gangs compete for the cells; None for opportunistic gangs."""
    priority: int
    """The gang's priority: gangs of a higher one that may preempt are not bound."""
    seats: tuple[Seat, ...]
    drained: tuple[Seat, ...] = ()
    """Cells of the VC that must become empty, to be mapped where the seats are."""
    nodes: tuple[NodeName, ...]
    """The node of each seat."""
    made_at: float
    first_promised: float | None
    """The start that was promised at first; None if no end of a gang was known."""
    promised: float | None
    """The start that is promised now."""
    deadline: float
    """Other gangs of the pool may use the cells only if they end before."""
    waits_for: GangKey | None
    """The gang whose end it waits for last."""
    slips: tuple[Slip, ...] = ()
    ended_at: float | None = None
    end: ReservationEnd | None = None

    @property
    def entry(self) -> str | None:
        """The name of the document's entry that it was made for, if it is not for a gang."""
        return None if self.gang.namespace else self.gang.name

    @property
    def kept(self) -> tuple[Seat, ...]:
        """All cells that other gangs of the pool leave alone."""
        return (*self.seats, *self.drained)

    @property
    def latest_slip(self) -> Slip:
        """The slip that led to the present promise: an earlier one may have grown, not the last."""
        current = (slip for slip in reversed(self.slips) if slip.promised == self.promised)
        return next(current, self.slips[-1])


class ReservationStep(StrEnum):
    """What has become of a reservation. Logged: values do not change."""

    MADE = "made"
    MOVED = "moved"
    """It has other cells, because it lost some."""
    EXCHANGED = "exchanged"
    """It has other cells, because the gang starts sooner there."""
    CLEARED = "cleared"
    """It has cells from which opportunistic gangs are moved."""
    GATHERED = "gathered"
    """It has cells that became free, in exchange for cells in use."""
    SLIPPED = "slipped"
    """The promised start was put off: a gang runs longer than expected."""
    RERANKED = "reranked"
    """Its gang has another priority."""
    TAKEN_OVER = "taken-over"
    """An earlier leader made it."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSearch:
    """What a search for the cells of a reservation was given, beside the ends of gangs."""

    request: MemberRequest
    nodes: Collection[NodeName]
    kept: tuple[Seat, ...]
    """Cells that are reserved for others."""
    may_preempt: bool
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCells:
    """The cells that a search has found, and what it was given."""

    shadow: Shadow
    search: CellSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationChange:
    """One step of a reservation, with all that it depended on."""

    step: ReservationStep
    after: Reservation
    at: float
    found: FoundCells | None = None
    """The cells that it has since then, if these were searched."""
    ends: tuple[tuple[GangKey, float], ...] = ()
    """Of a slip: when the gangs on its cells are expected to end, the last one last."""

    @property
    def is_decided(self) -> bool:
        """Whether it follows from a search for cells, or from expected ends, that are known."""
        return self.found is not None or bool(self.ends)
