"""The rows of the log in memory, for tests. `tests/contract` runs one suite on both stores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import groupby

from policy.errors import BackendError
from state.database.column_values import to_text
from state.history.facts import RunTable
from state.log import codec
from state.log.positions import END, Position
from state.log.records import DecisionRecord, LoggedDocument
from state.log.stretches import EpochStretch, Term, Wanted


class MemoryDecisions:
    """A DecisionStore without storage; `is_away` makes it fail like an unavailable database."""

    def __init__(self) -> None:
        self.records: list[DecisionRecord] = []
        self.documents: dict[str, LoggedDocument] = {}
        self.began: dict[Term, datetime] = {}
        self.history = RunTable()
        self.is_away = False

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Store all records except those that a newer epoch forbids; skips keys that are stored."""
        self._check_available()
        stored = {record.key: codec.decode(codec.encode(record)) for record in records}
        refused: list[DecisionRecord] = []
        for _, run in groupby(records, key=lambda record: (record.service, record.epoch)):
            refused += self._refuse(list(run))
        keys = {record.key for record in refused}
        self._keep([record for key, record in stored.items() if key not in keys])
        return refused

    def _keep(self, records: Sequence[DecisionRecord]) -> None:
        known = {record.key for record in self.records}
        new = [record for record in records if record.key not in known]
        self.records += [replace(record, documents=(), facts=None) for record in new]
        for document in (document for record in records for document in record.documents):
            self.documents.setdefault(document.hash, document)
        for facts in (record.facts for record in records if record.facts):
            self.history.record(facts)

    async def recent(
        self,
        limit: int,
        *,
        subject: str | None = None,
        with_observations: bool = False,
        before: Position = END,
    ) -> list[DecisionRecord]:
        """Return the newest records older than `before`, newest first."""
        self._check_available()
        found = (
            record
            for record in self.records
            if subject in (None, record.subject)
            and Position.of(record) < before
            and (with_observations or record.is_listed)
        )
        return _newest(found, limit)

    async def of_kind(
        self, kind: str, subjects: Sequence[str], *, since: datetime, until: datetime, limit: int
    ) -> list[DecisionRecord]:
        """Return the records of one kind about some subjects, newest first."""
        self._check_available()
        found = (
            record
            for record in self.records
            if record.kind == kind and record.subject in subjects and since <= record.at <= until
        )
        return _newest(found, limit)

    async def of_pod(self, pod_uid: str, limit: int) -> list[DecisionRecord]:
        """Return the records of one pod, newest first."""
        self._check_available()
        return _newest((record for record in self.records if record.pod_uid == pod_uid), limit)

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return records of one epoch, in the order of `sequence`, from `first` on."""
        self._check_available()
        found = {
            record.sequence: record
            for record in self.records
            if (record.service, record.epoch) == (service, epoch)
            and record.sequence is not None
            and record.sequence >= first
        }
        return [found[sequence] for sequence in sorted(found)][:limit]

    async def epochs(self, service: str, wanted: Wanted) -> list[EpochStretch]:
        """Return the epochs of a service that have wanted rows, in order."""
        self._check_available()
        rows: dict[int, list[DecisionRecord]] = {}
        for record in self.records:
            if record.service == service and record.epoch and record.sequence:
                rows.setdefault(record.epoch, []).append(record)
        found: list[EpochStretch] = []
        for epoch, records in sorted(rows.items()):
            first = min(records, key=lambda record: record.sequence or 0)
            asked = [one.sequence or 0 for one in records if _is_wanted(one, wanted)]
            if asked:
                began_at = self.began.get((service, epoch), first.at)
                found.append(
                    EpochStretch(
                        epoch=epoch, first=first.sequence or 0, last=max(asked), began_at=began_at
                    )
                )
        return found

    async def beside_epochs(
        self, service: str, wanted: Wanted, *, after: Position, limit: int
    ) -> list[DecisionRecord]:
        """Return wanted rows that are in no epoch of a service, oldest first, after a position."""
        self._check_available()
        found = [
            record
            for record in self.records
            if not (record.service == service and record.epoch and record.sequence)
            and _is_wanted(record, wanted)
            and Position.of(record) > after
        ]
        return sorted(found, key=Position.of)[:limit]

    async def count_stored(self, records: Sequence[DecisionRecord]) -> int:
        """Count those of some rows that are stored."""
        known = {(record.at, record.key) for record in self.records}
        return sum((record.at, record.key) in known for record in records)

    async def terms(self) -> dict[Term, datetime]:
        """Return which terms of services the log knows, and when each began."""
        return dict(self.began)

    async def is_empty(self) -> bool:
        """Tell whether the log has neither rows nor terms."""
        return not self.records and not self.began

    async def adopt(self, terms: Mapping[Term, datetime], days: Iterable[date]) -> None:
        """Prepare for rows of another log: its terms."""
        for term, began_at in terms.items():
            self.began.setdefault(term, began_at)

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that records refer to."""
        self._check_available()
        return self.documents.get(document_hash)

    def _refuse(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Return records of one epoch that were decided after a newer epoch had begun."""
        service, epoch = to_text(records[0].service), records[0].epoch
        if epoch is None:
            return []
        began_at = min(record.at for record in records)
        self.began[service, epoch] = min(began_at, self.began.get((service, epoch), began_at))
        newer = [at for (one, other), at in self.began.items() if one == service and other > epoch]
        return [record for record in records if newer and record.at >= min(newer)]

    def _check_available(self) -> None:
        if self.is_away:
            raise BackendError("the store is unavailable")


def _is_wanted(record: DecisionRecord, wanted: Wanted) -> bool:
    is_in_time = wanted.since <= record.at <= wanted.until
    return is_in_time and wanted.subject in (None, record.subject)


def _newest(records: Iterable[DecisionRecord], limit: int) -> list[DecisionRecord]:
    return sorted(records, key=lambda record: (record.at, record.key), reverse=True)[:limit]
