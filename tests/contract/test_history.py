"""The history of gangs, on Postgres and on its twin in memory."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from random import Random
from typing import Any

import pytest

from state.database.database import Database
from state.history.facts import Certainty, GangFacts
from state.history.runs import Hours, PostgresHistory, RecordedPod, RunFilter
from state.log.postgres import PostgresDecisions
from tests.support.state.records import a_decision
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stores:
    decisions: MemoryDecisions | PostgresDecisions
    history: MemoryHistory | PostgresHistory

    async def tell(self, *facts: GangFacts) -> None:
        await self.decisions.insert([a_decision(facts=one) for one in facts])

    async def runs(self, **wanted: Any) -> list[GangFacts]:
        return [stored.facts for stored in await self.history.find(RunFilter(**wanted), 100)]


@pytest.fixture(params=["memory", "database", "stock_database"])
def stores(request: pytest.FixtureRequest) -> Stores:
    if request.param == "memory":
        decisions = MemoryDecisions()
        return Stores(decisions, MemoryHistory(decisions.history))
    pool = request.getfixturevalue(request.param).pool
    return Stores(PostgresDecisions(pool), PostgresHistory(pool))


def _facts(run: str = "r1", **facts: Any) -> GangFacts:
    told = {"gang": "team-a/bert", "asked_at": _NOON - _HOUR, "vc": "lab", **facts}
    return GangFacts(run=run, **told)


def _member(stamp: str = "1", **told: Any) -> dict[str, Any]:
    return {"certainty": Certainty.NO_END, "stamp": stamp, "leafCells": 4, **told}


def _hours(user: str | None, hours: float, *, gangs: int, **names: Any) -> Hours:
    told = {"group_name": None, "vc": "lab", "class_name": None, "leaf_type": None, **names}
    return Hours(user_name=user, leaf_cell_hours=hours, gangs=gangs, **told)


_WAITS = _facts(
    user_name="alice", granted_class="test", leaf_count=4, stamp="1", members={"p1": _member()}
)
_RUNS = replace(
    _WAITS,
    stamp="2",
    granted_class="prod",
    leaf_count=8,
    started_at=_NOON,
    held_from=_NOON,
    nodes=("n1",),
    members={"p1": _member("2", bound=_NOON.isoformat()), "p2": _member("2")},
)
_ENDED = replace(
    _RUNS,
    stamp="3",
    started_at=_NOON + _HOUR,
    ended_at=_NOON + 4 * _HOUR,
    outcome="preempted",
    preempted_for="team-b/gpt",
    nodes=("n2",),
    certainty=Certainty.KNOWN,
    members={"p2": _member("3", certainty=Certainty.KNOWN, how="preempted")},
)
_PRESUMED = replace(
    _ENDED,
    stamp="9",
    outcome="deleted",
    preempted_for=None,
    certainty=Certainty.PRESUMED,
    members={"p2": _member("9", certainty=Certainty.PRESUMED, how="deleted")},
)
_WHOLE = replace(
    _ENDED,
    started_at=_NOON,
    nodes=("n1", "n2"),
    members={**_RUNS.members, **_ENDED.members},
)


@pytest.mark.parametrize("order", list(permutations([_WAITS, _RUNS, _ENDED, _PRESUMED]))[::5])
async def test_a_run_is_known_whole_in_whatever_order_it_was_told(
    stores: Stores, order: tuple[GangFacts, ...]
) -> None:
    await stores.tell(*order[:2])
    await stores.tell(*order[2:], order[0])
    assert await stores.runs() == [_WHOLE]


async def test_a_run_that_two_leaders_name_differently_is_found_by_its_pods(
    stores: Stores,
) -> None:
    other = replace(_RUNS, run="r2", stamp="5", members={"p2": _member("5"), "p3": _member("5")})
    await stores.tell(_WAITS, other)
    assert [run.run for run in await stores.runs()] == ["r1", "r2"][::-1]
    await stores.tell(replace(_RUNS, run="r3", stamp="4"))
    [run] = await stores.runs()
    assert (run.run, sorted(run.members), run.stamp) == ("r1", ["p1", "p2", "p3"], "5")
    assert set(await stores.history.recorded(["p1", "p2", "p3", "p4"])) == {"p1", "p2", "p3"}


async def test_recorded_pods_say_how_well_their_end_is_known(stores: Stores) -> None:
    await stores.tell(_RUNS)
    running = RecordedPod(certainty=Certainty.NO_END, has_run_ended=False)
    assert await stores.history.recorded(["p2", "p9"]) == {"p2": running}
    await stores.tell(_PRESUMED)
    presumed = RecordedPod(certainty=Certainty.PRESUMED, has_run_ended=True)
    assert await stores.history.recorded(["p2"]) == {"p2": presumed}


async def test_why_cellgate_ended_a_pod_is_kept(stores: Stores) -> None:
    told = replace(_RUNS, members={"p2": _member("2", told="for lab/gpt")})
    await stores.tell(told, _PRESUMED)
    [run] = await stores.runs()
    assert run.members["p2"] == {**_PRESUMED.members["p2"], "told": "for lab/gpt"}
    assert (await stores.history.recorded(["p2"]))["p2"].told == "for lab/gpt"


async def test_runs_that_have_not_ended_are_listed_page_by_page(stores: Stores) -> None:
    await stores.tell(*(_facts(f"r{number}") for number in range(5)), _facts("z", ended_at=_NOON))
    first = await stores.history.open_runs(3)
    assert [run.run for run in first] == ["r0", "r1", "r2"]
    assert [run.run for run in await stores.history.open_runs(3, after="r2")] == ["r3", "r4"]


async def test_runs_are_found_by_what_they_are_newest_first(stores: Stores) -> None:
    await stores.tell(
        _facts("old", asked_at=_NOON - 9 * _HOUR, ended_at=_NOON - 8 * _HOUR, user_name="alice"),
        _facts("new", user_name="alice", group_name="vision", ended_at=_NOON, outcome="failed"),
        _facts("bob", user_name="bob", gang="team-b/gpt", asked_at=_NOON, vc="prod"),
    )

    async def names(**wanted: Any) -> list[str]:
        return [run.run for run in await stores.runs(**wanted)]

    assert await names() == ["bob", "new", "old"]
    assert await names(user_name="alice") == ["new", "old"]
    assert await names(group_name="vision") == ["new"]
    assert await names(gang="team-b/gpt") == ["bob"]
    assert await names(vc="prod") == ["bob"]
    assert await names(outcome="failed") == ["new"]
    assert await names(has_ended=True) == ["new", "old"]
    assert await names(has_ended=False) == ["bob"]
    assert await names(since=_NOON - 2 * _HOUR) == ["bob", "new"]
    assert await names(until=_NOON) == ["new", "old"]
    [newest] = await stores.history.find(RunFilter(), 1)
    rest = await stores.history.find(RunFilter(), 10, before=newest.position)
    assert [stored.facts.run for stored in rest] == ["new", "old"]


async def test_attempts_of_one_workload_are_numbered(stores: Stores) -> None:
    await stores.tell(
        _facts("first", workload_uid="u1"),
        _facts("second", workload_uid="u1", asked_at=_NOON),
        _facts("other", workload_uid="u2", asked_at=_NOON + _HOUR),
        _facts("unknown", asked_at=_NOON + _HOUR),
    )
    found = await stores.history.find(RunFilter(), 10)
    assert {one.facts.run: one.attempt for one in found} == {
        "first": 1,
        "second": 2,
        "other": 1,
        "unknown": 1,
    }


async def test_words_that_postgres_cannot_store_are_replaced(stores: Stores) -> None:
    told = _facts(reason="a\0", nodes=("\ud800",), labels={"b\0": "\ud800"}, image="ä")
    await stores.tell(told)
    [run] = await stores.runs()
    assert (run.reason, run.nodes, run.labels, run.image) == ("a�", ("?",), {"b�": "?"}, "ä")


async def test_hours_count_what_lies_between_two_moments(stores: Stores) -> None:
    def ran(run: str, user: str, start: float, end: float | None) -> GangFacts:
        return _facts(
            run,
            user_name=user,
            leaf_count=4,
            started_at=_NOON + start * _HOUR,
            ended_at=None if end is None else _NOON + end * _HOUR,
        )

    await stores.tell(
        ran("inside", "alice", 1, 2.5),
        ran("across", "alice", -5, 0.5),
        ran("before", "alice", -5, 0),
        ran("after", "alice", 3, 4),
        ran("around", "bob", -5, 9),
        ran("running", "carol", 2, None),
        ran("wrong clock", "erin", 2, 1),
        _facts("waiting", user_name="dave", leaf_count=4),
    )
    assert await stores.history.hours_between(_NOON, _NOON + 3 * _HOUR) == [
        _hours("alice", 8.0, gangs=2),
        _hours("bob", 12.0, gangs=1),
        _hours("carol", 4.0, gangs=1),
    ]


async def test_hours_of_one_user_or_group_are_those_among_all(stores: Stores) -> None:
    await stores.tell(
        *(
            _facts(
                f"{user} {start}",
                user_name=user,
                group_name=group,
                leaf_count=4,
                started_at=_NOON + start * _HOUR,
                ended_at=None if end is None else _NOON + end * _HOUR,
            )
            for user, group in (("alice", "vision"), ("bob", "vision"), ("carol", None))
            for start, end in ((-40, 3), (-20, 40), (2, None))
        )
    )
    span = _NOON - 30 * _HOUR, _NOON + 50 * _HOUR
    found = await stores.history.hours_between(*span)
    assert len(found) == 3
    for user in ("alice", "bob", "carol", "dave"):
        own = await stores.history.hours_between(*span, user_name=user)
        assert _rounded(own) == _rounded([one for one in found if one.user_name == user])
    group = await stores.history.hours_between(*span, group_name="vision")
    assert _rounded(group) == _rounded([one for one in found if one.group_name == "vision"])
    both = await stores.history.hours_between(*span, user_name="carol", group_name="vision")
    assert both == []


@pytest.mark.parametrize(
    ("since", "until"),
    [(-30, 40), (-12, 36), (-12, 40), (-30, 36), (-12, 12), (0, 0.5), (-100, -60), (12, 12.5)],
)
async def test_hours_between_moments_of_different_days_are_exact(
    stores: Stores, since: float, until: float
) -> None:
    """Midnight is at -12, 12 and 36 hours from noon."""
    spans = [(-40, -31), (-31, -29), (-13, -12), (-12, 12), (-50, 50), (11, 13), (30, 36), (36, 39),
             (39, 41), (-30, 40), (1, 2)]  # fmt: skip
    await stores.tell(
        *(
            _facts(
                f"{start} to {end}",
                user_name=f"user-{number}",
                leaf_count=2,
                started_at=_NOON + start * _HOUR,
                ended_at=_NOON + end * _HOUR,
            )
            for number, (start, end) in enumerate(spans)
        )
    )
    found = await stores.history.hours_between(_NOON + since * _HOUR, _NOON + until * _HOUR)
    told = {(hours.user_name, hours.leaf_cell_hours, hours.gangs) for hours in found}
    assert told == {
        (f"user-{number}", 2.0 * (min(end, until) - max(start, since)), 1)
        for number, (start, end) in enumerate(spans)
        if min(end, until) > max(start, since)
    }


def _pod(start: float, end: float | None, **told: Any) -> dict[str, Any]:
    bound = (_NOON + start * _HOUR).isoformat()
    ended = {} if end is None else {"ended": (_NOON + end * _HOUR).isoformat()}
    return _member(bound=bound, **ended, **told)


async def test_each_pod_of_a_run_counts_for_as_long_as_it_held_leaf_cells(stores: Stores) -> None:
    run = _facts(
        user_name="alice",
        held_from=_NOON,
        started_at=_NOON + _HOUR,
        ended_at=_NOON + 40 * _HOUR,
        leaf_type="A100",
        members={
            "replaced": _pod(0, 2),
            "replaces": _pod(3, 30, leafType="V100"),
            "long": _pod(1, 36),
            "launcher": _member(),
        },
    )
    await stores.tell(run)
    whole = await stores.history.hours_between(_NOON, _NOON + 50 * _HOUR)
    assert whole == [
        _hours("alice", 4.0 * (2 + 35), gangs=1, leaf_type="A100"),
        _hours("alice", 4.0 * 27, gangs=1, leaf_type="V100"),
    ]
    part = await stores.history.hours_between(_NOON + 2.5 * _HOUR, _NOON + 3.5 * _HOUR)
    assert part == [
        _hours("alice", 4.0, gangs=1, leaf_type="A100"),
        _hours("alice", 2.0, gangs=1, leaf_type="V100"),
    ]
    [stored] = await stores.history.find(RunFilter(), 1)
    assert stored.leaf_cell_hours == pytest.approx(4.0 * (2 + 35 + 27))


async def test_a_run_that_goes_on_counts_until_now(stores: Stores) -> None:
    now = datetime.now(UTC)
    bound = (now - 2 * _HOUR).isoformat()
    ended = (now - _HOUR).isoformat()
    await stores.tell(
        _facts(
            user_name="alice",
            held_from=now - 2 * _HOUR,
            started_at=now - 2 * _HOUR,
            members={"p1": _member(bound=bound), "p2": _member(bound=bound, ended=ended)},
        )
    )
    [found] = await stores.history.hours_between(now - 9 * _HOUR, now + 9 * _HOUR)
    assert found.leaf_cell_hours == pytest.approx(8.0 + 4.0, abs=0.1)
    [found] = await stores.history.hours_between(now - 9 * _HOUR, now - 1.5 * _HOUR)
    assert found.leaf_cell_hours == pytest.approx(4.0)


async def test_hours_follow_what_is_learnt_later(stores: Stores) -> None:
    midnight = _NOON + 12 * _HOUR
    runs = _facts(user_name="alice", leaf_count=4, started_at=midnight - 2 * _HOUR, stamp="1")
    ended = replace(runs, ended_at=midnight + _HOUR, certainty=Certainty.PRESUMED, stamp="2")
    known = replace(ended, user_name="bob", certainty=Certainty.KNOWN, stamp="1",
                    started_at=midnight - 3 * _HOUR)  # fmt: skip
    day = (midnight - 24 * _HOUR, midnight)
    two_days = (midnight - 24 * _HOUR, midnight + 24 * _HOUR)
    await stores.tell(runs, ended, ended)
    assert await stores.history.hours_between(*day) == [_hours("alice", 8.0, gangs=1)]
    assert await stores.history.hours_between(*two_days) == [_hours("alice", 12.0, gangs=1)]
    await stores.tell(known)
    assert await stores.history.hours_between(*two_days) == [_hours("bob", 16.0, gangs=1)]


async def test_an_empty_name_is_none(stores: Stores) -> None:
    ran = _facts(user_name="", leaf_count=1, started_at=_NOON, ended_at=_NOON + 48 * _HOUR)
    await stores.tell(ran)
    between = await stores.history.hours_between(_NOON, _NOON + 48 * _HOUR)
    assert between == [_hours(None, 48.0, gangs=1)]


async def test_random_facts_mean_the_same_to_both(database: Database) -> None:
    dice = Random(7)
    twin = MemoryDecisions()
    postgres = PostgresDecisions(database.pool)
    for step in range(60):
        batch = [a_decision(facts=_random_facts(dice, step, n)) for n in range(dice.randint(1, 6))]
        await twin.insert(batch)
        await postgres.insert(batch)
    ours, theirs = MemoryHistory(twin.history), PostgresHistory(database.pool)
    assert 3 < len(twin.history) < 40
    found = await theirs.find(RunFilter(), 100)
    assert [one.facts for one in found] == [one.facts for one in await ours.find(RunFilter(), 100)]
    assert len({uid for run in twin.history.values() for uid in run.members}) == sum(
        len(run.members) for run in twin.history.values()
    )
    for first, last in ((-100, 100), (-30, 31.5), (-12, 12), (1, 2)):
        span = (_NOON + first * _HOUR, _NOON + last * _HOUR)
        hours = await ours.hours_between(*span)
        assert _rounded(await theirs.hours_between(*span)) == _rounded(hours)
        assert hours


def _rounded(hours: list[Hours]) -> list[tuple[Any, ...]]:
    return [
        (one.user_name, one.class_name, one.leaf_type, round(one.leaf_cell_hours, 6), one.gangs)
        for one in hours
    ]


def _random_facts(dice: Random, step: int, number: int) -> GangFacts:
    """Facts that contradict each other, about pods of which some belong to one run."""
    run = dice.randrange(40)
    stamp = f"{dice.randrange(3)} {step:03} {number}"

    def time() -> datetime:
        return _NOON + dice.randrange(-50, 50) * _HOUR

    members = {}
    for pod in dice.sample([2 * run, 2 * run + 1], dice.randint(1, 2)):
        start = dice.randrange(-50, 50)
        ends = dice.random() < 0.7
        members[f"p{pod}"] = _pod(
            start,
            start + dice.randrange(1, 20) if ends else None,
            leafType=dice.choice(["A100", "V100"]),
            certainty=dice.choice([*Certainty]) if ends else Certainty.NO_END,
        ) | {"stamp": stamp, **({"told": stamp} if dice.random() < 0.2 else {})}
    if dice.random() < 0.05:
        members |= {f"p{2 * ((run + 1) % 40)}": _member(stamp)}
    return _facts(
        f"{dice.choice('ab')}{run}",
        gang=f"a/{run}",
        user_name=dice.choice(["alice", "Bob", "åke", "", "a b"]),
        granted_class=dice.choice(["prod", "test"]),
        asked_at=time(),
        started_at=time(),
        held_from=_NOON - 50 * _HOUR,
        ended_at=_NOON + 100 * _HOUR,
        nodes=tuple(dice.sample(["n1", "n10", "n2", "N3", "ö"], dice.randrange(5))),
        outcome=dice.choice(["failed", "succeeded"]),
        certainty=dice.choice([Certainty.PRESUMED, Certainty.KNOWN]),
        stamp=stamp,
        members=members,
    )
