"""The port of the past: rows about admissions, and charges, of a stretch of time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

import orjson

from policy.past.gangs import AdmissionRow, HeldCharge


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdmission:
    """A row about an admission; its JSON is read when it is needed, since that takes memory."""

    key: UUID
    at: datetime
    subject: str
    outcome: str
    details: str
    inputs: str

    def read(self) -> AdmissionRow:
        """Read the row."""
        return AdmissionRow(
            at=self.at.timestamp(),
            subject=self.subject,
            outcome=self.outcome,
            details=orjson.loads(self.details),
            inputs=orjson.loads(self.inputs),
        )


class PastStore(Protocol):
    """The port. Every method raises BackendError if the database does not answer in time."""

    async def admissions(self, *, since: datetime, until: datetime) -> list[StoredAdmission]:
        """Return the admissions from one moment until before another one, oldest first."""

    async def charges(self, *, since: datetime) -> list[HeldCharge]:
        """Return the charges that were in force at or after a moment, oldest first."""
