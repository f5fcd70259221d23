"""The outlook in memory."""

from dataclasses import dataclass

from policy.errors import BackendError, ConflictError
from state.ledger.ledger import LeaderTerm
from state.outlook.outlook import Outlook


@dataclass
class MemoryOutlook:
    """OutlookStore without a database."""

    fails: bool = False
    outlook: Outlook | None = None
    epoch: int = 0

    async def save(self, outlook: Outlook, *, term: LeaderTerm) -> None:
        if self.fails:
            raise BackendError("no database")
        if term.epoch < self.epoch:
            raise ConflictError("another leader writes now")
        self.epoch, self.outlook = term.epoch, outlook

    async def load(self) -> Outlook | None:
        if self.fails:
            raise BackendError("no database")
        return self.outlook
