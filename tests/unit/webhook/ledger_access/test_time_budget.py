"""A review has one time budget: nothing that hangs or is slow makes it late.

Whatever hangs here hangs for ever, so a review that ends has not waited for it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kube.api.client import KubeClient
from policy.admission.charge_request import build_charge
from policy.admission.gang_decision import GangDecision
from policy.errors import RequestError
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit, Scope
from policy.submission import ClassName, GangKey
from state.ledger.ledger import ChargeAnswer, KnownGang
from tests.support.kube.pod_groups import a_group_member, a_pod_group
from tests.support.kube.pods import a_pod
from tests.support.state.charges import TERM
from tests.support.twins.ledger import MemoryLedger
from tests.support.webhook.admission_world import AdmissionWorld, StaleUsage, a_policy
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook
from webhook.ledger_access.time_budget import REVIEW_SECONDS, parse_timeout, time_budget

AWAY = "cellgate: Quota database unavailable; last known usage applied"


class SlowLedger(MemoryLedger):
    """Takes its time for some of the questions, counted from one."""

    def __init__(self, world: AdmissionWorld, seconds: Callable[[int], float]) -> None:
        super().__init__(world.clock)
        self._seconds = seconds
        self.asked = 0

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        await self._take_time()
        return await super().charge(charge, limits=limits)

    async def find(self, gang: GangKey, *, scope: Scope) -> KnownGang:
        await self._take_time()
        return await super().find(gang, scope=scope)

    async def _take_time(self) -> None:
        self.asked += 1
        await asyncio.sleep(self._seconds(self.asked))


class HungCluster(KubeClient):
    """Never answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def request(self, method: str, path: str, **_: Any) -> dict[str, Any]:
        self.asked.append(path)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def _with_slow_ledger(world: AdmissionWorld, seconds: Callable[[int], float]) -> SlowLedger:
    world.ledger = slow = SlowLedger(world, seconds)
    world.usage = StaleUsage(world, leaf_cells=0)
    return slow


def _is_degraded(decision: GangDecision) -> bool:
    return AWAY in decision.format_warnings()


async def test_a_ledger_that_hangs_is_not_waited_for_and_not_asked_again() -> None:
    world = AdmissionWorld()
    slow = _with_slow_ledger(world, lambda _: float("inf"))
    replica = world.replica()
    assert _is_degraded(await replica.admit(world.ask("a")))
    assert _is_degraded(await replica.admit(world.ask("b")))
    assert slow.asked == 1


async def test_many_slow_answers_together_have_no_longer_than_one() -> None:
    """Twenty attempts, each quick enough by itself, would take a second; yet nothing hangs."""
    rules = "- {priority: prod, when: 'occupied > 1', then: oppo}"
    world = AdmissionWorld(a_policy(rules=rules))
    slow = _with_slow_ledger(world, lambda _: 0.04)
    breaker = world.breaker()
    replica = world.replica(breaker=breaker)

    async def disturb() -> None:
        for number in range(200):  # usage is never what it was a moment ago
            await MemoryLedger.charge(slow, _charge(world, f"other-{number}"))
            await asyncio.sleep(0.01)

    disturbing = asyncio.create_task(disturb())
    with time_budget(0.2):
        decision = await replica.admit(world.ask("a", cells=1))
    disturbing.cancel()
    assert _is_degraded(decision)
    assert slow.asked <= 5
    assert breaker.is_closed


async def test_a_review_that_waits_for_a_turn_is_answered_and_the_breaker_stays_closed() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 6', then: fail}"))
    slow = _with_slow_ledger(world, lambda asked: 0 if asked in (1, 2, 4, 5) else float("inf"))
    await MemoryLedger.charge(slow, _charge(world, "before", cells=6))
    breaker = world.breaker()
    replica = world.replica(breaker=breaker)
    with time_budget(3600):
        first = asyncio.create_task(replica.admit(world.ask("a")))
    while slow.asked < 3:  # it has its turn, and the ledger hangs
        await asyncio.sleep(0)
    with time_budget(0.05):
        assert _is_degraded(await replica.admit(world.ask("b")))
    assert (slow.asked, breaker.is_closed) == (5, True)
    first.cancel()
    await asyncio.wait([first])


async def test_what_was_admitted_for_lack_of_time_is_charged_though_the_ledger_was_available() -> (
    None
):
    world = AdmissionWorld()
    slow = _with_slow_ledger(world, lambda asked: 0.05 if asked == 1 else 0)
    told = asyncio.Event()

    async def catch_up() -> None:
        told.set()

    breaker = world.breaker(catch_up=catch_up, pause_seconds=0)
    with time_budget(0.001):
        await world.replica(breaker=breaker).admit(world.ask("a"))
    assert (slow.asked, breaker.is_closed) == (1, True)
    watching = asyncio.create_task(breaker.run())
    await told.wait()
    watching.cancel()
    await asyncio.wait([watching])


async def test_an_api_server_that_hangs_is_not_waited_for() -> None:
    client = HungCluster()
    webhook = Webhook(client=client)
    assert (await webhook.pods.mutate(a_review(a_group_member()))).is_allowed
    assert client.asked == ["/apis/scheduling.k8s.io"]
    group = a_pod_group().of_class("prod").controlled_by("Job", "train")
    controller = "system:serviceaccount:kube-system:job-controller"
    assert (await webhook.templates.mutate(a_review(group, user=controller))).is_allowed
    assert client.asked[1:] == ["/apis/batch/v1/namespaces/lab/jobs/train"]


async def test_a_gang_that_runs_is_not_counted_for_ever() -> None:
    client = HungCluster()
    webhook = Webhook(client=client)
    pod = a_pod("a").with_gpus(1).in_gang("bert", size=2)
    await webhook.pods.mutate(a_review(pod))
    (live,) = await webhook.world.ledger.charges()
    await webhook.world.ledger.confirm([live.charge.gang], term=TERM)
    assert (await webhook.pods.mutate(a_review(pod))).is_allowed
    assert len(client.asked) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, REVIEW_SECONDS),
        ("30s", REVIEW_SECONDS),
        ("1m0s", REVIEW_SECONDS),
        ("400ms", 0.1),
        ("0s", 0.0),
        ("0.1s", 0.025),
    ],
)
def test_a_review_takes_a_part_of_what_the_api_server_waits(
    text: str | None, seconds: float
) -> None:
    assert parse_timeout(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "soon", "5s soon", "-1s", "1e9s", "NaNs", "9" * 400])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="query parameter timeout: must be a duration"):
        parse_timeout(text)


def _charge(world: AdmissionWorld, gang: str, *, cells: int = 1) -> Charge:
    return build_charge(world.ask(gang, cells=cells), ClassName("prod"))
