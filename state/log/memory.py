"""What is stored in Postgres, in memory instead, for tests. tests/contract keeps both alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from uuid import UUID

from policy.errors import BackendError
from state.history.facts import GangFacts, merge_all
from state.history.runs import Hours
from state.log.positions import END, Position
from state.log.records import DecisionRecord, LoggedDocument
from state.log.storable import to_storable, to_storable_facts, to_text

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


class MemoryHistory:
    """A HistoryStore over the facts of a MemoryDecisions."""

    def __init__(self, decisions: MemoryDecisions) -> None:
        self._decisions = decisions

    async def of_user(self, user_name: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one user's gangs, newest first."""
        return self._newest("user_name", user_name, limit)

    async def of_gang(self, gang: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one gang, newest first."""
        return self._newest("gang", gang, limit)

    async def hours_of_days(self, first: date, last: date) -> list[Hours]:
        """Sum the leaf-cell-hours of whole days, UTC."""
        since = datetime.combine(first, time(), UTC)
        until = datetime.combine(last, time(), UTC) + timedelta(days=1)
        found = [_Part.of(fact, since, until) for fact in self._decisions.history.values()]
        # What ends at midnight ends on the day before, and one that ends later on another day.
        return _sum_parts(
            replace(part, gangs=int(part.fact.ended_at is None or part.fact.ended_at <= until))
            for part in found
        )

    async def hours_between(self, since: datetime, until: datetime) -> list[Hours]:
        """Sum the leaf-cell-hours between any two moments."""
        return _sum_parts(_Part.of(fact, since, until) for fact in self._decisions.history.values())

    def _newest(self, name: str, value: str, limit: int) -> list[GangFacts]:
        found = [fact for fact in self._decisions.history.values() if getattr(fact, name) == value]
        # Postgres sorts what has no time first when the newest come first.
        found.sort(key=lambda fact: (fact.asked_at is None, fact.asked_at), reverse=True)
        return found[:limit]


def _newest(records: Iterable[DecisionRecord], limit: int) -> list[DecisionRecord]:
    return sorted(records, key=lambda record: (record.at, record.key), reverse=True)[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one run used between two moments."""

    fact: GangFacts
    seconds: float
    gangs: int = 1

    @classmethod
    def of(cls, fact: GangFacts, since: datetime, until: datetime) -> "_Part":
        if fact.started_at is None:
            return cls(fact=fact, seconds=0.0)
        end = min(fact.ended_at or datetime.now(UTC), until)
        return cls(fact=fact, seconds=(end - max(fact.started_at, since)).total_seconds())


def _sum_parts(parts: Iterable[_Part]) -> list[Hours]:
    sums: dict[tuple[str | None, ...], Hours] = {}
    for part in parts:
        if part.seconds <= 0:
            continue
        fact = part.fact
        names = (fact.user_name, fact.group_name, fact.vc, fact.granted_class)
        user, group, vc, class_name = whose = tuple(name or None for name in names)
        known = sums.get(whose) or Hours(
            user_name=user,
            group_name=group,
            vc=vc,
            class_name=class_name,
            leaf_cell_hours=0.0,
            gangs=0,
        )
        hours = (fact.leaf_count or 0) * part.seconds / _SECONDS_PER_HOUR
        sums[whose] = replace(
            known, leaf_cell_hours=known.leaf_cell_hours + hours, gangs=known.gangs + part.gangs
        )
    return [sums[whose] for whose in sorted(sums, key=_nulls_last)]


def _nulls_last(values: tuple[str | None, ...]) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in values]
