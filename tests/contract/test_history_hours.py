"""Leaf-cell-hours of the history of gangs, on Postgres and on its twin in memory."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from state.history.facts import Certainty, GangFacts
from state.history.runs import RunFilter
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

__all__ = ["stores"]


async def test_hours_count_what_lies_between_two_moments(stores: Stores) -> None:
    def ran(run: str, user: str, start: float, end: float | None) -> GangFacts:
        return some_facts(
            run,
            user_name=user,
            leaf_count=4,
            started_at=NOON + start * HOUR,
            ended_at=None if end is None else NOON + end * HOUR,
        )

    await stores.tell(
        ran("inside", "alice", 1, 2.5),
        ran("across", "alice", -5, 0.5),
        ran("before", "alice", -5, 0),
        ran("after", "alice", 3, 4),
        ran("around", "bob", -5, 9),
        ran("running", "carol", 2, None),
        ran("wrong clock", "erin", 2, 1),
        some_facts("waiting", user_name="dave", leaf_count=4),
    )
    assert await stores.history.hours_between(NOON, NOON + 3 * HOUR) == [
        some_hours("alice", 8.0, gangs=2),
        some_hours("bob", 12.0, gangs=1),
        some_hours("carol", 4.0, gangs=1),
    ]


async def test_hours_of_one_user_or_group_are_those_among_all(stores: Stores) -> None:
    await stores.tell(
        *(
            some_facts(
                f"{user} {start}",
                user_name=user,
                group_name=group,
                leaf_count=4,
                started_at=NOON + start * HOUR,
                ended_at=None if end is None else NOON + end * HOUR,
            )
            for user, group in (("alice", "vision"), ("bob", "vision"), ("carol", None))
            for start, end in ((-40, 3), (-20, 40), (2, None))
        )
    )
    span = NOON - 30 * HOUR, NOON + 50 * HOUR
    found = await stores.history.hours_between(*span)
    assert len(found) == 3
    for user in ("alice", "bob", "carol", "dave"):
        own = await stores.history.hours_between(*span, user_name=user)
        assert rounded(own) == rounded([one for one in found if one.user_name == user])
    group = await stores.history.hours_between(*span, group_name="vision")
    assert rounded(group) == rounded([one for one in found if one.group_name == "vision"])
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
            some_facts(
                f"{start} to {end}",
                user_name=f"user-{number}",
                leaf_count=2,
                started_at=NOON + start * HOUR,
                ended_at=NOON + end * HOUR,
            )
            for number, (start, end) in enumerate(spans)
        )
    )
    found = await stores.history.hours_between(NOON + since * HOUR, NOON + until * HOUR)
    told = {(hours.user_name, hours.leaf_cell_hours, hours.gangs) for hours in found}
    assert told == {
        (f"user-{number}", 2.0 * (min(end, until) - max(start, since)), 1)
        for number, (start, end) in enumerate(spans)
        if min(end, until) > max(start, since)
    }


async def test_each_pod_of_a_run_counts_for_as_long_as_it_held_leaf_cells(stores: Stores) -> None:
    run = some_facts(
        user_name="alice",
        held_from=NOON,
        started_at=NOON + HOUR,
        ended_at=NOON + 40 * HOUR,
        leaf_type="A100",
        members={
            "replaced": a_bound_member(0, 2),
            "replaces": a_bound_member(3, 30, leafType="V100"),
            "long": a_bound_member(1, 36),
            "launcher": a_member(),
        },
    )
    await stores.tell(run)
    whole = await stores.history.hours_between(NOON, NOON + 50 * HOUR)
    assert whole == [
        some_hours("alice", 4.0 * (2 + 35), gangs=1, leaf_type="A100"),
        some_hours("alice", 4.0 * 27, gangs=1, leaf_type="V100"),
    ]
    part = await stores.history.hours_between(NOON + 2.5 * HOUR, NOON + 3.5 * HOUR)
    assert part == [
        some_hours("alice", 4.0, gangs=1, leaf_type="A100"),
        some_hours("alice", 2.0, gangs=1, leaf_type="V100"),
    ]
    [stored] = await stores.history.find(RunFilter(), 1)
    assert stored.leaf_cell_hours == pytest.approx(4.0 * (2 + 35 + 27))


async def test_a_run_that_goes_on_counts_until_now(stores: Stores) -> None:
    now = datetime.now(UTC)
    bound = (now - 2 * HOUR).isoformat()
    ended = (now - HOUR).isoformat()
    await stores.tell(
        some_facts(
            user_name="alice",
            held_from=now - 2 * HOUR,
            started_at=now - 2 * HOUR,
            members={"p1": a_member(bound=bound), "p2": a_member(bound=bound, ended=ended)},
        )
    )
    [found] = await stores.history.hours_between(now - 9 * HOUR, now + 9 * HOUR)
    assert found.leaf_cell_hours == pytest.approx(8.0 + 4.0, abs=0.1)
    [found] = await stores.history.hours_between(now - 9 * HOUR, now - 1.5 * HOUR)
    assert found.leaf_cell_hours == pytest.approx(4.0)


async def test_hours_follow_what_is_learnt_later(stores: Stores) -> None:
    midnight = NOON + 12 * HOUR
    runs = some_facts(user_name="alice", leaf_count=4, started_at=midnight - 2 * HOUR, stamp="1")
    ended = replace(runs, ended_at=midnight + HOUR, certainty=Certainty.PRESUMED, stamp="2")
    known = replace(ended, user_name="bob", certainty=Certainty.KNOWN, stamp="1",
                    started_at=midnight - 3 * HOUR)  # fmt: skip
    day = (midnight - 24 * HOUR, midnight)
    two_days = (midnight - 24 * HOUR, midnight + 24 * HOUR)
    await stores.tell(runs, ended, ended)
    assert await stores.history.hours_between(*day) == [some_hours("alice", 8.0, gangs=1)]
    assert await stores.history.hours_between(*two_days) == [some_hours("alice", 12.0, gangs=1)]
    await stores.tell(known)
    assert await stores.history.hours_between(*two_days) == [some_hours("bob", 16.0, gangs=1)]
