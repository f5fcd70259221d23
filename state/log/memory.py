"""The log in memory, for tests. `tests/contract` holds it to Postgres' answers."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from policy.errors import BackendError
from state.database.column_values import to_text
from state.history.facts import GangFacts, merge_all, to_storable_facts
from state.log.positions import END, Position
from state.log.records import DecisionRecord, LoggedDocument
from state.log.storable import to_storable

_SECONDS_PER_HOUR = 3600


class MemoryDecisions:
    """A DecisionStore that forgets everything at its end, and can be taken away."""

    def __init__(self) -> None:
        self.records: list[DecisionRecord] = []
        self.documents: dict[str, LoggedDocument] = {}
        self.terms: dict[tuple[str, int], datetime] = {}
        self.history: dict[str, GangFacts] = {}
        self.is_away = False

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Store all records but those that a newer epoch forbids; skips keys stored already."""
        self._check_there()
        storable = {record.key: to_storable(record) for record in records}
        refused: list[DecisionRecord] = []
        for _, run in groupby(records, key=lambda record: (record.service, record.epoch)):
            refused += self._refuse(list(run))
        keys = {record.key for record in refused}
        self._keep([record for record in records if record.key not in keys], storable)
        return refused

    def _keep(
        self, records: Sequence[DecisionRecord], storable: Mapping[UUID, DecisionRecord]
    ) -> None:
        known = {record.key for record in self.records}
        keys = dict.fromkeys(record.key for record in records if record.key not in known)
        self.records.extend(storable[key] for key in keys)
        for document in (document for record in records for document in record.documents):
            self.documents.setdefault(document.hash, document)
        told = [to_storable_facts(record.facts) for record in records if record.facts]
        for fact in merge_all([*self.history.values(), *told]):
            self.history[fact.run] = fact

    async def recent(
        self,
        limit: int,
        *,
        subject: str | None = None,
        with_observations: bool = False,
        before: Position = END,
    ) -> list[DecisionRecord]:
        """Return the newest records older than `before`, newest first."""
        self._check_there()
        found = (
            record
            for record in self.records
            if subject in (None, record.subject)
            and Position.of(record) < before
            and (with_observations or not record.is_observation)
        )
        return _newest(found, limit)

    async def of_pod(self, pod_uid: str, limit: int) -> list[DecisionRecord]:
        """Return what happened to one pod, newest first."""
        self._check_there()
        return _newest((record for record in self.records if record.pod_uid == pod_uid), limit)

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return rows of one epoch from a sequence number on, in that order."""
        self._check_there()
        found = {
            record.sequence: record
            for record in self.records
            if (record.service, record.epoch) == (service, epoch)
            and record.sequence is not None
            and record.sequence >= first
        }
        return [found[sequence] for sequence in sorted(found)][:limit]

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that a row refers to."""
        self._check_there()
        return self.documents.get(document_hash)

    def _refuse(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Return rows of one term that were decided after a newer one had begun."""
        service, epoch = to_text(records[0].service), records[0].epoch
        if epoch is None:
            return []
        began_at = min(record.at for record in records)
        self.terms[service, epoch] = min(began_at, self.terms.get((service, epoch), began_at))
        newer = [at for (one, other), at in self.terms.items() if one == service and other > epoch]
        return [record for record in records if newer and record.at >= min(newer)]

    def _check_there(self) -> None:
        if self.is_away:
            raise BackendError("the store is away")


def _newest(records: Iterable[DecisionRecord], limit: int) -> list[DecisionRecord]:
    return sorted(records, key=lambda record: (record.at, record.key), reverse=True)[:limit]
