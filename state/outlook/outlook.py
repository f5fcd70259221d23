"""The port to the outlook. Tests have a twin in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from state.ledger.ledger import LeaderTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlookEntry:
    """When a gang of one kind would start; times are seconds since 1970."""

    vc: str
    leaf_type: str
    class_name: str
    """Empty without a Classes document."""
    leaf_cells: int
    """The largest gang for which it counts."""
    level: str
    """The queue level in which it would wait."""
    place: int
    """Its place among the gangs of the level; 1 is the first."""
    low: float = 0.0
    high: float = 0.0
    unknown: str = ""
    """Why no start is expected; empty if one is."""
    starts_at_once: bool = False
    """Whether it would not wait: then the start of a larger gang says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """All entries, and when they were computed."""

    computed_at: datetime
    entries: Sequence[OutlookEntry]


class OutlookStore(Protocol):
    """The last outlook of the leader."""

    async def save(self, outlook: Outlook, *, term: LeaderTerm) -> None:
        """Replace the outlook.

        Raises ConflictError if another leader writes now, BackendError if it is unknown whether it
        is written; writing it again is harmless.
        """

    async def load(self) -> Outlook | None:
        """Return the last outlook; None if there was none. Raises BackendError."""
