"""The port to the promise ledger. Tests have a twin in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from policy.submission import GangKey
from state.ledger.ledger import LeaderTerm


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseRow:
    """A reservation of one gang, as it was when it was last written."""

    gang: GangKey
    made_at: datetime
    ended_at: datetime | None
    body: Mapping[str, Any]
    """What was promised, and each slip with its reason."""


class PromiseStore(Protocol):
    """The promises to gangs; there is one row for each gang and each time one was made to it."""

    async def save(self, rows: Sequence[PromiseRow], *, term: LeaderTerm) -> None:
        """Write promises that were made or have changed.

        Raises ConflictError if another leader writes now, BackendError if it is unknown whether the
        rows are written; writing them again is harmless.
        """

    async def load(self, *, ended_since: datetime) -> list[PromiseRow]:
        """Return the promises that are in force and those that ended since, oldest first."""
