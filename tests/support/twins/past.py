"""The past in memory: what a webhook has logged, and what its ledger holds and has held."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import orjson

from policy.errors import BackendError
from policy.past.gangs import HeldCharge
from state.log.records import DecisionRecord, RowKind
from state.past.past import StoredAdmission


@dataclass
class MemoryPast:
    """PastStore without a database."""

    records: Sequence[DecisionRecord] = ()
    held: list[HeldCharge] = field(default_factory=list)
    is_away: bool = False
    longest: timedelta = timedelta.max
    """What is asked for at once; for more, it does not answer in time."""

    async def admissions(self, *, since: datetime, until: datetime) -> list[StoredAdmission]:
        self._check()
        if until - since > self.longest:
            raise BackendError("no answer in time")
        found = [
            record
            for record in self.records
            if (record.service, record.kind) == ("webhook", RowKind.ADMISSION)
            and since <= record.at < until
        ]
        return [_stored(record) for record in sorted(found, key=lambda one: (one.at, one.key))]

    async def charges(self, *, since: datetime) -> list[HeldCharge]:
        self._check()
        moment = since.timestamp()
        found = [one for one in self.held if one.until is None or one.until > moment]
        return sorted(found, key=lambda one: (one.since, one.charge.decision))

    def _check(self) -> None:
        if self.is_away:
            raise BackendError("no database")


def _stored(record: DecisionRecord) -> StoredAdmission:
    return StoredAdmission(
        key=record.key,
        at=record.at,
        subject=record.subject,
        outcome=record.outcome,
        details=orjson.dumps(record.details).decode(),
        inputs=orjson.dumps(record.inputs).decode(),
    )
