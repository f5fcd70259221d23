"""Histories of gangs to test, on Postgres and in memory, and facts about gangs."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from state.history.facts import Certainty, GangFacts
from state.history.runs import Hours, PostgresHistory, RunFilter
from state.log.postgres import PostgresDecisions
from tests.support.state.records import a_decision
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stores:
    """A log and the history that it writes."""

    decisions: MemoryDecisions | PostgresDecisions
    history: MemoryHistory | PostgresHistory

    async def tell(self, *facts: GangFacts) -> None:
        """Write descriptions of runs."""
        await self.decisions.insert([a_decision(facts=one) for one in facts])

    async def runs(self, **wanted: Any) -> list[GangFacts]:
        """Return the runs that are wanted."""
        return [stored.facts for stored in await self.history.find(RunFilter(**wanted), 100)]


@pytest.fixture(params=["memory", "database", "stock_database"])
def stores(request: pytest.FixtureRequest) -> Stores:
    """Each kind of store in turn."""
    if request.param == "memory":
        decisions = MemoryDecisions()
        return Stores(decisions, MemoryHistory(decisions.history))
    pool = request.getfixturevalue(request.param).pool
    return Stores(PostgresDecisions(pool), PostgresHistory(pool))


def some_facts(run: str = "r1", **facts: Any) -> GangFacts:
    """Return a plausible description of a run."""
    told = {"gang": "team-a/bert", "asked_at": NOON - HOUR, "vc": "lab", **facts}
    return GangFacts(run=run, **told)


def a_member(stamp: str = "1", **told: Any) -> dict[str, Any]:
    """Return a pod that has not ended."""
    return {"certainty": Certainty.NO_END, "stamp": stamp, "leafCells": 4, **told}


def a_bound_member(start: float, end: float | None, **told: Any) -> dict[str, Any]:
    """Return a pod that held leaf cells, by hours from noon."""
    bound = (NOON + start * HOUR).isoformat()
    ended = {} if end is None else {"ended": (NOON + end * HOUR).isoformat()}
    return a_member(bound=bound, **ended, **told)


def some_hours(user: str | None, hours: float, *, gangs: int, **names: Any) -> Hours:
    """Return a sum."""
    told = {"group_name": None, "vc": "lab", "class_name": None, "leaf_type": None, **names}
    return Hours(user_name=user, leaf_cell_hours=hours, gangs=gangs, **told)


def rounded(hours: list[Hours]) -> list[tuple[Any, ...]]:
    """Return sums that can be compared in spite of how they were added up."""
    return [
        (one.user_name, one.class_name, one.leaf_type, round(one.leaf_cell_hours, 6), one.gangs)
        for one in hours
    ]
