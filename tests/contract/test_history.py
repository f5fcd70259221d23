"""The history of gangs, on Postgres and on its twin in memory."""

from dataclasses import replace
from datetime import datetime
from itertools import permutations
from random import Random
from typing import Any

import pytest

from state.database.database import Database
from state.history.facts import Certainty, GangFacts
from state.history.runs import PostgresHistory, RecordedPod, RunFilter
from state.log.postgres import PostgresDecisions
from tests.support.state.histories import (
    HOUR,
    NOON,
    Stores,
    a_bound_member,
    a_member,
    rounded,
    some_facts,
    some_hours,
    stores,
)
from tests.support.state.records import a_decision
from tests.support.twins.history import MemoryHistory
from tests.support.twins.log import MemoryDecisions

__all__ = ["stores"]


_WAITS = some_facts(
    user_name="alice", granted_class="test", leaf_count=4, stamp="1", members={"p1": a_member()}
)
_RUNS = replace(
    _WAITS,
    stamp="2",
    granted_class="prod",
    leaf_count=8,
    started_at=NOON,
    held_from=NOON,
    nodes=("n1",),
    members={"p1": a_member("2", bound=NOON.isoformat()), "p2": a_member("2")},
)
_ENDED = replace(
    _RUNS,
    stamp="3",
    started_at=NOON + HOUR,
    ended_at=NOON + 4 * HOUR,
    outcome="preempted",
    preempted_for="team-b/gpt",
    nodes=("n2",),
    certainty=Certainty.KNOWN,
    members={"p2": a_member("3", certainty=Certainty.KNOWN, how="preempted")},
)
_PRESUMED = replace(
    _ENDED,
    stamp="9",
    outcome="deleted",
    preempted_for=None,
    certainty=Certainty.PRESUMED,
    members={"p2": a_member("9", certainty=Certainty.PRESUMED, how="deleted")},
)
_WHOLE = replace(
    _ENDED,
    started_at=NOON,
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


_GOES_ON = replace(
    _RUNS, extent="9 2", stamp="4", members={"p3": a_member("4", bound=NOON.isoformat())}
)
_ENDED_AGAIN = replace(
    _GOES_ON,
    stamp="5",
    ended_at=NOON + 8 * HOUR,
    outcome="failed",
    certainty=Certainty.KNOWN,
    members={"p3": a_member("5", certainty=Certainty.KNOWN, how="failed", bound=NOON.isoformat())},
)


def _as_run(facts: GangFacts, number: int) -> GangFacts:
    """Return the same facts of another run."""
    members = {f"{uid} of {number}": member for uid, member in facts.members.items()}
    return replace(facts, run=f"r{number}", members=members)


@pytest.mark.parametrize("ends", [False, True], ids=["goes on", "ends again"])
async def test_a_run_that_went_on_after_its_end_is_as_it_is_said_of_all_its_pods(
    stores: Stores, ends: bool
) -> None:
    told = [replace(one, extent="5 1") for one in (_ENDED, _PRESUMED)] + [_GOES_ON]
    last = _ENDED_AGAIN if ends else _GOES_ON
    for number, order in enumerate(permutations([*told, last])):
        await stores.tell(*(_as_run(one, number) for one in order))
    found = await stores.runs()
    expected = replace(last, run="", members={}, nodes=("n1", "n2"))
    assert [replace(run, run="", members={}) for run in found] == [expected] * 24
    assert len(await stores.history.open_runs(100)) == (0 if ends else 24)
    span = NOON, NOON + 8 * HOUR
    assert sum(one.gangs for one in await stores.history.hours_between(*span)) == 24


async def test_a_description_of_an_older_release_counts_by_its_end_and_stamp(
    stores: Stores,
) -> None:
    await stores.tell(replace(_RUNS, extent="9 2"), _ENDED)
    [run] = await stores.runs()
    assert (run.extent, run.outcome) == ("9 2", "preempted")


async def test_a_run_that_two_leaders_name_differently_is_found_by_its_pods(
    stores: Stores,
) -> None:
    other = replace(_RUNS, run="r2", stamp="5", members={"p2": a_member("5"), "p3": a_member("5")})
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
    await stores.tell(replace(_PRESUMED, extent="5 1"))
    presumed = RecordedPod(certainty=Certainty.PRESUMED, has_run_ended=True, extent="5 1")
    assert await stores.history.recorded(["p2"]) == {"p2": presumed}
    await stores.tell(_GOES_ON)
    assert await stores.history.recorded(["p2"]) == {
        "p2": replace(presumed, has_run_ended=False, extent="9 2")
    }


async def test_why_cellgate_ended_a_pod_is_kept(stores: Stores) -> None:
    told = replace(_RUNS, members={"p2": a_member("2", told="for lab/gpt")})
    await stores.tell(told, _PRESUMED)
    [run] = await stores.runs()
    assert run.members["p2"] == {**_PRESUMED.members["p2"], "told": "for lab/gpt"}
    assert (await stores.history.recorded(["p2"]))["p2"].told == "for lab/gpt"


async def test_runs_that_have_not_ended_are_listed_page_by_page(stores: Stores) -> None:
    await stores.tell(
        *(some_facts(f"r{number}") for number in range(5)), some_facts("z", ended_at=NOON)
    )
    first = await stores.history.open_runs(3)
    assert [run.run for run in first] == ["r0", "r1", "r2"]
    assert [run.run for run in await stores.history.open_runs(3, after="r2")] == ["r3", "r4"]


async def test_runs_are_found_by_what_they_are_newest_first(stores: Stores) -> None:
    await stores.tell(
        some_facts("old", asked_at=NOON - 9 * HOUR, ended_at=NOON - 8 * HOUR, user_name="alice"),
        some_facts("new", user_name="alice", group_name="vision", ended_at=NOON, outcome="failed"),
        some_facts("bob", user_name="bob", gang="team-b/gpt", asked_at=NOON, vc="prod"),
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
    assert await names(since=NOON - 2 * HOUR) == ["bob", "new"]
    assert await names(until=NOON) == ["new", "old"]
    [newest] = await stores.history.find(RunFilter(), 1)
    rest = await stores.history.find(RunFilter(), 10, before=newest.position)
    assert [stored.facts.run for stored in rest] == ["new", "old"]


async def test_attempts_of_one_workload_are_numbered(stores: Stores) -> None:
    await stores.tell(
        some_facts("first", workload_uid="u1"),
        some_facts("second", workload_uid="u1", asked_at=NOON),
        some_facts("other", workload_uid="u2", asked_at=NOON + HOUR),
        some_facts("unknown", asked_at=NOON + HOUR),
    )
    found = await stores.history.find(RunFilter(), 10)
    assert {one.facts.run: one.attempt for one in found} == {
        "first": 1,
        "second": 2,
        "other": 1,
        "unknown": 1,
    }


async def test_words_that_postgres_cannot_store_are_replaced(stores: Stores) -> None:
    told = some_facts(reason="a\0", nodes=("\ud800",), labels={"b\0": "\ud800"}, image="ä")
    await stores.tell(told)
    [run] = await stores.runs()
    assert (run.reason, run.nodes, run.labels, run.image) == ("a�", ("?",), {"b�": "?"}, "ä")


async def test_an_empty_name_is_none(stores: Stores) -> None:
    ran = some_facts(user_name="", leaf_count=1, started_at=NOON, ended_at=NOON + 48 * HOUR)
    await stores.tell(ran)
    between = await stores.history.hours_between(NOON, NOON + 48 * HOUR)
    assert between == [some_hours(None, 48.0, gangs=1)]


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
        span = (NOON + first * HOUR, NOON + last * HOUR)
        hours = await ours.hours_between(*span)
        assert rounded(await theirs.hours_between(*span)) == rounded(hours)
        assert hours


def _random_facts(dice: Random, step: int, number: int) -> GangFacts:
    """Facts that contradict each other, about pods of which some belong to one run."""
    run = dice.randrange(40)
    stamp = f"{dice.randrange(3)} {step:03} {number}"

    def time() -> datetime:
        return NOON + dice.randrange(-50, 50) * HOUR

    members = {}
    for pod in dice.sample([2 * run, 2 * run + 1], dice.randint(1, 2)):
        start = dice.randrange(-50, 50)
        ends = dice.random() < 0.7
        members[f"p{pod}"] = a_bound_member(
            start,
            start + dice.randrange(1, 20) if ends else None,
            leafType=dice.choice(["A100", "V100"]),
            certainty=dice.choice([*Certainty]) if ends else Certainty.NO_END,
        ) | {"stamp": stamp, **({"told": stamp} if dice.random() < 0.2 else {})}
    if dice.random() < 0.05:
        members |= {f"p{2 * ((run + 1) % 40)}": a_member(stamp)}
    return some_facts(
        f"{dice.choice('ab')}{run}",
        gang=f"a/{run}",
        user_name=dice.choice(["alice", "Bob", "åke", "", "a b"]),
        granted_class=dice.choice(["prod", "test"]),
        asked_at=time(),
        started_at=time(),
        held_from=NOON - 50 * HOUR,
        ended_at=NOON + 100 * HOUR,
        nodes=tuple(dice.sample(["n1", "n10", "n2", "N3", "ö"], dice.randrange(5))),
        outcome=dice.choice(["failed", "succeeded"]),
        certainty=dice.choice([Certainty.PRESUMED, Certainty.KNOWN]),
        extent=dice.choice(["", "1 1", "1 2", "2 1"]),
        stamp=stamp,
        members=members,
    )
