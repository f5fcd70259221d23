"""Who leads, over pauses, thefts and an API server that goes away."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kube.api.client import KubeClient, KubeError, Object
from kube.api.leadership import Leadership, LeadershipSettings
from kube.marks import EPOCH_ANNOTATION
from simulation.cluster import SimulatedCluster
from tests.support.services.simulated_cluster import connected

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class HeldClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Line:
    """A connection that can be cut."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.is_cut = False
        self.loses_answers = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
    ) -> Object:
        if self.is_cut:
            raise KubeError("cut")
        answer = await self._client.request(method, path, query=query, body=body)
        if self.loses_answers:
            raise KubeError("answer lost")
        return answer


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=1), tmp_path) as client:
        yield client


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


class Replica(Leadership):
    """A candidate whose connection and clock the test holds."""

    def __init__(self, client: KubeClient, name: str, clock: Callable[[], float]) -> None:
        self.line = Line(client)
        settings = LeadershipSettings(
            name="cellgate-extender",
            namespace="default",
            identity=name,
            renew_seconds=0.01,
            look_seconds=0.01,
        )
        super().__init__(
            self.line,  # type: ignore[arg-type] # all that it uses of a client
            settings,
            monotonic=clock,
            utc_now=lambda: datetime.now(UTC),
        )


async def test_one_leads_and_the_other_waits(client: KubeClient, clock: HeldClock) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    assert not await second.attempt()
    assert first.is_leading
    assert not second.is_leading


async def test_a_leader_that_resigns_is_followed_at_once(
    client: KubeClient, clock: HeldClock
) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    await first.resign()
    assert not first.is_leading
    assert await second.attempt()
    assert second.epoch > first.epoch


async def test_a_leader_that_is_stopped_while_it_renews_is_followed_at_once(
    client: KubeClient, clock: HeldClock
) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    first.line.loses_answers = True
    assert await first.attempt(), "it leads until it should have renewed"
    first.line.loses_answers = False
    await first.resign()
    assert await second.attempt()


async def test_who_resigns_leaves_the_lease_of_another_alone(
    client: KubeClient, clock: HeldClock
) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    lease = await client.request("GET", f"{LEASES}/cellgate-extender")
    lease["spec"]["holderIdentity"] = "thief"
    await client.request("PUT", f"{LEASES}/cellgate-extender", body=lease)
    await first.resign()
    assert not await second.attempt()


async def test_a_paused_leader_knows_when_it_wakes_that_it_does_not_lead(
    client: KubeClient, clock: HeldClock
) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    clock.now += 3.0
    assert not first.is_leading


async def test_a_dead_leader_is_followed_when_its_lease_stayed_unchanged_for_its_duration(
    client: KubeClient, clock: HeldClock
) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    assert not await second.attempt()
    clock.now += 3.9
    assert not await second.attempt()
    clock.now += 0.2
    assert await second.attempt()
    assert not await first.attempt()
    assert second.epoch > first.epoch


async def test_who_comes_late_watches_the_whole_duration(
    client: KubeClient, clock: HeldClock
) -> None:
    """A newcomer cannot know how old the last renewal is: clocks are not compared."""
    first = Replica(client, "first", clock)
    await first.acquire()
    clock.now += 60
    second = Replica(client, "second", clock)
    assert not await second.attempt()
    clock.now += 4
    assert await second.attempt()


async def test_a_leader_renews_and_is_not_followed(client: KubeClient, clock: HeldClock) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    epoch = first.epoch
    for _ in range(6):
        clock.now += 2
        assert await first.attempt()
        assert not await second.attempt()
    assert first.epoch == epoch


async def test_a_stolen_lease_ends_leadership(client: KubeClient, clock: HeldClock) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    lease = await client.request("GET", f"{LEASES}/cellgate-extender")
    lease["spec"]["holderIdentity"] = "thief"
    await client.request("PUT", f"{LEASES}/cellgate-extender", body=lease)
    await asyncio.wait_for(first.keep(), 5)
    assert not first.is_leading


async def test_a_deleted_lease_is_made_again_in_a_later_term(
    client: KubeClient, clock: HeldClock
) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    before = first.epoch
    await client.request("DELETE", f"{LEASES}/cellgate-extender")
    await asyncio.sleep(0.002)  # epochs of a Lease that was deleted are told by the clock
    assert await first.attempt()
    assert first.epoch > before


@pytest.mark.parametrize("epoch", ["99999999999999999999", "9" * 5000, "-1", "garbage", ""])
async def test_an_epoch_that_nobody_of_ours_wrote_ends_no_leadership(
    client: KubeClient, clock: HeldClock, epoch: str
) -> None:
    """Terms would be numbered beyond what the ledger takes, for ever; or nobody could read them."""
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    await first.acquire()
    lease = await client.request("GET", f"{LEASES}/cellgate-extender")
    lease["metadata"]["annotations"] = {EPOCH_ANNOTATION: epoch}
    lease["spec"]["leaseTransitions"] = 2**31 - 1
    await client.request("PUT", f"{LEASES}/cellgate-extender", body=lease)
    assert await first.attempt()
    await first.resign()
    assert await second.attempt()
    assert first.epoch < second.epoch < 2**53
    lease = await client.request("GET", f"{LEASES}/cellgate-extender")
    assert lease["spec"]["leaseTransitions"] == 2**31 - 1


async def test_without_an_api_server_a_leader_leads_until_it_should_have_renewed(
    client: KubeClient, clock: HeldClock
) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    first.line.is_cut = True
    clock.now += 2.9
    assert await first.attempt()
    clock.now += 0.2
    assert not await first.attempt()
    first.line.is_cut = False
    assert await first.attempt()


async def test_a_renewal_whose_answer_was_lost_is_no_new_term(
    client: KubeClient, clock: HeldClock
) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    epoch = first.epoch
    first.line.loses_answers = True
    await first.attempt()
    first.line.loses_answers = False
    assert await first.attempt()
    assert first.epoch == epoch


async def test_of_two_that_take_over_one_leads(client: KubeClient, clock: HeldClock) -> None:
    first = Replica(client, "first", clock)
    await first.acquire()
    heirs = [Replica(client, f"heir-{index}", clock) for index in range(4)]
    for heir in heirs:
        await heir.attempt()
    clock.now += 5
    won = await asyncio.gather(*(heir.attempt() for heir in heirs))
    assert sorted(won) == [False, False, False, True]


async def test_a_lease_that_somebody_deleted_is_not_taken_while_its_holder_leads(
    client: KubeClient, clock: HeldClock
) -> None:
    first, second = Replica(client, "first", clock), Replica(client, "second", clock)
    assert await first.attempt()
    assert not await second.attempt()
    await client.request("DELETE", f"{LEASES}/cellgate-extender")
    led = []
    for seconds in (2, 4):
        clock.now += seconds
        led.append((first.is_leading, await second.attempt()))
    assert led == [(True, False), (False, True)]
