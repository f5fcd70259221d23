"""The ledger is away: gangs grow and end, names come again, and limits hold by what is known."""

import asyncio

import pytest

from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import UserName
from tests.support.state.charges import TERM
from tests.support.twins.usage import MemoryUsage
from tests.support.webhook.admission_world import AdmissionWorld, a_policy
from webhook.admission.recent_gangs import RecentGangCheck, RecentGangs
from webhook.ledger_access.catch_up import catch_up

ALICE = Scope(UserName("alice"))
VISION = """groups:
- name: vision
  limits: {leafCells: 20, leafCellsHigh: 10}
  over: %s
  users: [{name: alice}, {name: bob}]
"""


def _a_world(over: str = "fail") -> AdmissionWorld:
    return AdmissionWorld(a_policy(quotas=VISION % over))


def _known(world: AdmissionWorld) -> tuple[int, int]:
    usage = world.usage.usage(ALICE)
    return usage.leaf_cells, usage.gangs


async def _charged(world: AdmissionWorld) -> list[int]:
    return [live.charge.leaf_count for live in await world.ledger.charges()]


async def test_a_gang_grows_and_the_ledger_hears_of_it_when_it_is_back() -> None:
    world = _a_world()
    replica = world.replica()
    first = await replica.admit(world.member("b", own=1, size=3))
    world.ledger.is_away = True
    for _ in range(2):
        larger = await replica.admit(world.member("b", own=4, size=3))
        assert (larger.decision_id, larger.outcome) == (first.decision_id, Outcome.ADMITTED)
    assert _known(world) == (9, 1)
    world.ledger.is_away = False
    assert await _charged(world) == [3]
    await catch_up(world.ledger, world.usage.assumed)
    assert await _charged(world) == [9]


async def test_a_gang_that_began_without_the_ledger_grows_too() -> None:
    world = _a_world()
    replica = world.replica()
    world.ledger.is_away = True
    for own in (1, 4):
        await replica.admit(world.member("b", own=own, size=3))
    assert _known(world) == (6, 1)
    world.ledger.is_away = False
    await catch_up(world.ledger, world.usage.assumed)
    assert await _charged(world) == [6]


async def test_a_gang_that_two_replicas_let_in_is_charged_for_the_larger_part() -> None:
    world = _a_world()
    world.ledger.is_away = True
    usages = [MemoryUsage(world.ledger), MemoryUsage(world.ledger)]
    for usage, own in zip(usages, (2, 1), strict=True):
        await world.replica(usage).admit(world.member("b", own=own, size=3))
    world.ledger.is_away = False
    for usage in reversed(usages):
        await catch_up(world.ledger, usage.assumed)
    assert await _charged(world) == [6]


async def test_a_gang_does_not_outgrow_its_quota() -> None:
    world = _a_world()
    replica = world.replica()
    await replica.admit(world.member("b", own=1, size=2))
    world.ledger.is_away = True
    refused = await replica.admit(world.member("b", own=10, size=2))
    assert refused.admission.format_refusal() == (
        "alice asked for 9 leaf cells in class prod: refused by the quotas of group vision. "
        "Group vision holds 2 leaf cells in high classes and 9 more are asked for; the limit is "
        "10. A gang of 8 leaf cells would fit. Quota database unavailable; last known usage "
        "applied."
    )
    assert refused.is_degraded
    assert _known(world) == (2, 1)


async def test_where_usage_is_not_known_a_gang_grows() -> None:
    world = _a_world()
    world.usage.is_known, world.ledger.is_away = False, True
    replica = world.replica()
    for own in (1, 30):
        assert (await replica.admit(world.member("b", own=own, size=2))).outcome is Outcome.ADMITTED


@pytest.mark.parametrize("cells", [10, 4])
async def test_a_name_that_was_released_is_a_gang_of_its_own(cells: int) -> None:
    """It is compared with the limits, decided and counted like any other."""
    world = _a_world()
    recent = RecentGangs(monotonic=lambda: world.seconds)
    replica = world.replica(recent=recent)
    await replica.admit(world.ask("b", cells=cells, size=2))
    await world.ledger.release([world.ask("b").submission.gang], term=TERM)
    await world.replica().admit(world.ask("other", cells=6))
    await _check(world, recent)
    world.ledger.is_away = True
    again = await replica.admit(world.ask("b", cells=cells, size=2))
    assert again.outcome is (Outcome.ADMITTED if cells == 4 else Outcome.REFUSED)
    assert _known(world)[0] == (10 if cells == 4 else 6)


async def test_a_gang_that_runs_is_followed_however_long_ago_it_began() -> None:
    world = _a_world()
    recent = RecentGangs(monotonic=lambda: world.seconds)
    replica = world.replica(recent=recent)
    first = await replica.admit(world.ask("b", cells=10, size=2))
    for _ in range(10):
        world.seconds += 500
        await _check(world, recent)
    world.ledger.is_away = True
    await _check(world, recent)
    again = await replica.admit(world.ask("b", cells=10, size=2))
    assert again.decision_id == first.decision_id
    assert _known(world) == (10, 1)


async def test_what_the_ledger_has_not_heard_of_has_not_ended() -> None:
    world = _a_world()
    recent = RecentGangs(monotonic=lambda: world.seconds)
    replica = world.replica(recent=recent)
    world.ledger.is_away = True
    first = await replica.admit(world.ask("b", cells=10, size=2))
    world.ledger.is_away = False
    await _check(world, recent)
    world.ledger.is_away = True
    assert (await replica.admit(world.ask("b", cells=10, size=2))).decision_id == first.decision_id


async def test_whatever_is_asked_at_once_stays_within_what_is_known() -> None:
    world = _a_world()
    await world.replica().admit(world.ask("before", cells=3))
    world.ledger.is_away = True
    replica = world.replica()
    decisions = await asyncio.gather(*(replica.admit(world.ask(f"g{n}")) for n in range(500)))
    assert sum(decision.outcome is Outcome.ADMITTED for decision in decisions) == 7
    assert _known(world) == (10, 8)


async def test_every_replica_stays_within_what_it_knows_and_then_they_know_of_each_other() -> None:
    world = _a_world()
    world.ledger.is_away = True
    usages = [MemoryUsage(world.ledger) for _ in range(3)]
    for number, usage in enumerate(usages):
        replica = world.replica(usage)
        asked = [world.ask(f"g{number}-{n}", cells=4) for n in range(5)]
        decisions = [await replica.admit(request) for request in asked]
        assert sum(decision.outcome is Outcome.ADMITTED for decision in decisions) == 2
    world.ledger.is_away = False
    for usage in usages:
        await catch_up(world.ledger, usage.assumed)
    assert sum(await _charged(world)) == 24
    assert (await world.replica().admit(world.ask("one more"))).outcome is Outcome.REFUSED


async def _check(world: AdmissionWorld, recent: RecentGangs) -> None:
    await RecentGangCheck(
        recent, ledger=world.ledger, assumed=world.usage.assumed, breaker=world.breaker()
    ).check()
