"""What is stored in Postgres, in memory instead, for tests. tests/contract keeps both alike."""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from policy.errors import BackendError
from state.log import DecisionRecord
from state.storable import to_json, to_optional_text, to_text


class MemoryDecisions:
    """A DecisionStore that forgets everything at its end, and can be taken away."""

    def __init__(self) -> None:
        self.records: list[DecisionRecord] = []
        self.is_away = False

    async def insert(self, records: Sequence[DecisionRecord]) -> None:
        """Store all records, or none; skips those whose key is stored already."""
        self._check_there()
        known = {record.key for record in self.records}
        new = {record.key: _stored(record) for record in records if record.key not in known}
        self.records.extend(new.values())

    async def recent(self, limit: int, *, subject: str | None = None) -> list[DecisionRecord]:
        """Return the newest records, newest first."""
        self._check_there()
        found = [record for record in self.records if subject in (None, record.subject)]
        return found[::-1][:limit]

    def _check_there(self) -> None:
        if self.is_away:
            raise BackendError("the store is away")


def _stored(record: DecisionRecord) -> DecisionRecord:
    """Return the record as Postgres would give it back."""
    return replace(
        record,
        service=to_text(record.service),
        kind=to_text(record.kind),
        subject=to_text(record.subject),
        pod_uid=to_optional_text(record.pod_uid),
        outcome=to_text(record.outcome),
        reason=to_text(record.reason),
        policy_version=to_optional_text(record.policy_version),
        details=orjson.loads(to_json(record.details)),
    )
