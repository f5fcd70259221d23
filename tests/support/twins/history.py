"""The history of gangs in memory, for tests. `tests/contract` runs one suite on both stores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from state.history.facts import GangFacts
from state.history.runs import Hours

_SECONDS_PER_HOUR = 3600


class MemoryHistory:
    """The queries of `PostgresHistory`, over facts by run."""

    def __init__(self, facts: Mapping[str, GangFacts]) -> None:
        self._facts = facts

    async def of_user(self, user_name: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one user's gangs, newest first."""
        return self._newest("user_name", user_name, limit)

    async def of_gang(self, gang: str, limit: int) -> list[GangFacts]:
        """Return the newest runs of one gang, newest first."""
        return self._newest("gang", gang, limit)

    async def hours_of_days(self, first: date, last: date) -> list[Hours]:
        """Sum the leaf-cell-hours of whole UTC days."""
        since = datetime.combine(first, time(), UTC)
        until = datetime.combine(last, time(), UTC) + timedelta(days=1)
        found = [_Part.of(fact, since, until) for fact in self._facts.values()]
        # A run that ends at midnight counts for the day before; a later end is another day's.
        return _sum_parts(
            replace(part, gangs=int(part.fact.ended_at is None or part.fact.ended_at <= until))
            for part in found
        )

    async def hours_between(self, since: datetime, until: datetime) -> list[Hours]:
        """Sum the leaf-cell-hours between two moments."""
        return _sum_parts(_Part.of(fact, since, until) for fact in self._facts.values())

    def _newest(self, name: str, value: str, limit: int) -> list[GangFacts]:
        found = [fact for fact in self._facts.values() if getattr(fact, name) == value]
        # In descending order, Postgres sorts NULL first.
        found.sort(key=lambda fact: (fact.asked_at is None, fact.asked_at), reverse=True)
        return found[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The use of one run between two moments."""

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
