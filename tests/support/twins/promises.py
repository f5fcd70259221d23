"""The promise ledger in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from policy.errors import BackendError, ConflictError
from policy.submission import GangKey
from state.ledger.ledger import LeaderTerm
from state.promises.promises import PromiseRow


@dataclass
class MemoryPromises:
    """PromiseStore without a database."""

    fails: bool = False
    rows: dict[tuple[GangKey, datetime], PromiseRow] = field(default_factory=dict)
    epoch: int = 0

    async def save(self, rows: Sequence[PromiseRow], *, term: LeaderTerm) -> None:
        if self.fails:
            raise BackendError("no database")
        if term.epoch < self.epoch:
            raise ConflictError("another leader writes now")
        self.epoch = term.epoch
        for row in rows:
            known = self.rows.get((row.gang, row.made_at))
            if known is None or known.ended_at is None:
                self.rows[row.gang, row.made_at] = row

    async def load(self, *, ended_since: datetime) -> list[PromiseRow]:
        if self.fails:
            raise BackendError("no database")
        found = [
            row for row in self.rows.values() if row.ended_at is None or row.ended_at >= ended_since
        ]
        return sorted(found, key=lambda row: (row.ended_at is None, row.made_at))
