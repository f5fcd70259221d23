"""Many submissions at once, over several replicas and one Postgres: never over, not by one."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.policy import Policy
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import GroupName, UserName
from state.database.database import Database
from state.ledger.postgres import LedgerSettings, PostgresLedger
from state.ledger.usage_cache import UsageCache
from tests.support.state.charges import TERM
from tests.support.state.ledgers import a_patient_ledger
from tests.support.webhook.admission_world import AdmissionWorld, a_policy
from webhook.admission.admitter import Admitter
from webhook.admission.recent_gangs import RecentGangs
from webhook.ledger_access.breaker import Breaker
from webhook.ledger_access.time_budget import time_budget

SUBMISSIONS = 500
ALICE = Scope(UserName("alice"))
# The machine may be busy: what is tested is not how fast it is.
_SECONDS = 60.0


@asynccontextmanager
async def a_replica(database: Database) -> AsyncIterator[Admitter]:
    """Run one process' part: its own ledger and its own usage in memory."""
    usage = UsageCache(database.url)
    ledger = a_patient_ledger(database.pool, on_usage=usage.observe)
    following = asyncio.create_task(usage.run())
    loop = asyncio.get_running_loop()
    try:
        while not usage.is_known:
            await asyncio.sleep(0.01)
        yield Admitter(
            ledger=ledger,
            usage=usage,
            breaker=Breaker(lambda: ledger.usage(ALICE)),
            recent=RecentGangs(monotonic=loop.time),
        )
    finally:
        following.cancel()
        await asyncio.wait([following])
        await ledger.aclose()


@pytest.fixture
async def replicas(database: Database) -> AsyncIterator[list[Admitter]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(a_replica(database)) for _ in range(3)]


async def _admit_all(replicas: list[Admitter], requests: list[ChargeRequest]) -> list[GangDecision]:
    with time_budget(_SECONDS):
        return await asyncio.gather(
            *(replicas[number % 3].admit(one) for number, one in enumerate(requests))
        )


async def _submit_all(replicas: list[Admitter], policy: Policy) -> Counter[tuple[str, str]]:
    world = AdmissionWorld(policy)
    requests = [world.ask(f"gang-{number}") for number in range(SUBMISSIONS)]
    decisions = await _admit_all(replicas, requests)
    return Counter((str(decision.outcome), str(decision.final_class)) for decision in decisions)


@pytest.mark.parametrize(
    "policy",
    [
        a_policy(
            rules="- {priority: prod, occupiedHigh: '> 7', then: oppo}\n"
            "- {occupied: '> 30', then: fail}"
        ),
        a_policy(
            rules="- {priority: prod, when: 'occupiedHigh > 7', then: oppo}\n"
            "- {occupied: '> 30', then: fail}"
        ),
        a_policy(
            rules="- {priority: prod, occupiedHigh: '> 7', then: oppo}\n"
            "- {priority: oppo, occupiedLow: '> 23', then: fail}"
        ),
        a_policy(
            rules="- {occupied: '> 30', then: fail}",
            quotas="groups: [{name: v, limits: {leafCellsHigh: 7}, over: oppo, "
            "users: [{name: alice}]}]",
        ),
    ],
    ids=["rules", "an expression", "low classes", "quotas"],
)
async def test_limits_hold_to_the_last_cell(
    replicas: list[Admitter], database: Database, policy: Policy
) -> None:
    got = await _submit_all(replicas, policy)
    assert (got["admitted", "prod"], got["admitted", "oppo"]) == (7, 23)
    usage = await a_patient_ledger(database.pool).usage(ALICE)
    assert (usage.leaf_cells, usage.leaf_cells_high, usage.gangs) == (30, 7, 30)


async def test_members_of_one_gang_get_one_decision_wherever_they_arrive(
    replicas: list[Admitter], database: Database
) -> None:
    quotas = "groups: [{name: v, limits: {leafCells: 64}, users: [{name: alice}]}]"
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 64', then: oppo}", quotas=quotas))
    members = [world.ask("big", cells=64, size=64) for _ in range(64)]
    decisions = await _admit_all(replicas, members)
    assert len({(decision.decision_id, decision.final_class) for decision in decisions}) == 1
    assert {decision.outcome for decision in decisions} == {Outcome.ADMITTED}
    group = await a_patient_ledger(database.pool).usage(Scope(None, GroupName("v")))
    assert (group.leaf_cells, group.gangs) == (64, 1)


@pytest.mark.parametrize(
    "policy",
    [
        a_policy(quotas="groups: [{name: v, limits: {leafCells: 40}, users: [{name: alice}]}]"),
        a_policy(rules="- {occupied: '> 40', then: fail}"),
        a_policy(rules="- {when: 'occupied > 40', then: fail}"),
    ],
    ids=["quotas", "rules", "an expression"],
)
async def test_members_beyond_what_a_group_needs_stay_within_the_limits_wherever_they_arrive(
    replicas: list[Admitter], database: Database, policy: Policy
) -> None:
    world = AdmissionWorld(policy)
    members = [
        replace(world.ask("open", cells=8, size=8), may_grow=True, member_leaf_count=1)
        for _ in range(100)
    ]
    decisions = await _admit_all(replicas, members)
    assert Counter(decision.outcome for decision in decisions)[Outcome.ADMITTED] == 40
    (live,) = await a_patient_ledger(database.pool).charges()
    assert live.charge.leaf_count == 40


async def test_members_that_say_the_gang_is_larger_pay_for_themselves_wherever_they_arrive(
    replicas: list[Admitter], database: Database
) -> None:
    world = AdmissionWorld(
        a_policy(quotas="groups: [{name: v, limits: {leafCells: 5}, users: [{name: alice}]}]")
    )
    small = replace(world.member("sly", own=1, size=1), is_alone=False)
    await _admit_all(replicas, [small])
    for _ in range(4):
        members = [world.member("sly", own=1, size=20) for _ in range(3)]
        decisions = await _admit_all(replicas, members)
    assert {decision.outcome for decision in decisions} == {Outcome.REFUSED}
    (live,) = await a_patient_ledger(database.pool).charges()
    assert live.charge.leaf_count == 5


async def test_admissions_that_never_become_pods_expire(database: Database) -> None:
    ledger = PostgresLedger(database.pool, LedgerSettings(ttl_seconds=0.2))
    usage = UsageCache(database.url)
    admitter = Admitter(
        ledger=ledger,
        usage=usage,
        breaker=Breaker(lambda: ledger.usage(ALICE)),
        recent=RecentGangs(monotonic=lambda: 0.0),
    )
    world = AdmissionWorld()
    for number in range(3):
        await admitter.admit(world.ask(f"bert-*{number}"))
    await ledger.confirm([world.ask("bert-*0").submission.gang], term=TERM)
    await asyncio.sleep(0.3)
    expired = await ledger.expire(term=TERM)
    assert sorted(charge.gang.name for charge in expired) == ["bert-*1", "bert-*2"]
    assert (await ledger.usage(ALICE)).leaf_cells == 1
    await ledger.aclose()
