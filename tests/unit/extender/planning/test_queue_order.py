"""The order follows the Queues document, recent use and the size of VCs."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NoReturn

import pytest

from extender.planning.queue_order import QueueOrder
from kube.follow.policies import PolicySink
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import PodUid
from policy.topology import Topology
from service.clock import Clock
from state.history.facts import GangFacts
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.clocks import FrozenTime
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.queue.driver import deliver, step, submit, world_of_two_vcs
from tests.support.queue.planner_world import PlannerWorld
from tests.support.twins.history import MemoryHistory

_HEAD = "apiVersion: cellgate.io/v1\nkind: Queues\n"
_FIFO = _HEAD + "levels: [{name: all, strategy: fifo}]"
_FAIR = _HEAD + "levels: [{name: all, strategy: fair-share}]"
_FILL = _HEAD + "levels: [{name: all, strategy: fifo, worth: {fill: 1h}}]"
_GOLD = _HEAD + (
    "levels: [{name: all, strategy: fifo, worth: {userLevel: 1h}}]\nuserLevels: {gold: [bob]}"
)


class _World:
    """Two gangs wait, alice's before bob's."""

    def __init__(self, *, topology: Topology | None = None) -> None:
        self.planner: PlannerWorld = world_of_two_vcs()
        submit(self.planner, a_gang("first").of(4, 4))
        step(self.planner)
        for name, user in (("a", "alice"), ("b", "bob")):
            self.planner.now += 1
            submit(self.planner, a_gang(name).of(4, 4))
            for index in range(2):
                pod = self.planner.pods[PodUid(f"{name}-{index}")]
                self.planner.change(pod, user=user, group="vision")
        deliver(self.planner)
        step(self.planner)
        self.time, self.history = FrozenTime(), MemoryHistory()
        self.policies = PolicySink(KeptEvents())
        self.counts: Mapping[tuple[str, str], int] = {("a", "used"): 8, ("", "free"): 8}
        ranking = self.planner.planner.ranking
        self.order = QueueOrder(
            ranking.order,
            ranking,
            policies=self.policies,
            history=self.history,
            counts=lambda: self.counts,
            topology=lambda: topology,
            clock=Clock(now=self.time),
        )
        self.told: list[bool] = []
        self.order.on_reorder.append(lambda: self.told.append(True))

    def apply(self, text: str) -> None:
        self.policies.replace([a_policy_map("queues", text)])

    @property
    def gangs(self) -> list[str]:
        return [one.gang.name for one, _ in self.planner.planner.ranking.in_order()]

    async def run(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await self.order.run()


def _use(user: str, *, hours: int, until: datetime) -> GangFacts:
    start = until.replace(hour=until.hour - hours)
    return GangFacts(
        run=f"run-{user}",
        gang=f"ns/{user}",
        user_name=user,
        group_name="vision",
        leaf_count=16,
        asked_at=start,
        started_at=start,
        held_from=start,
        ended_at=until,
    )


async def test_a_changed_document_reorders_at_once() -> None:
    world = _World()
    world.apply(_GOLD)
    await world.run()
    assert world.gangs == ["b", "a"]
    assert world.told
    world.apply(_FIFO)
    await world.run()
    assert world.gangs == ["a", "b"]


async def test_a_document_with_problems_changes_nothing() -> None:
    world = _World()
    world.apply(_GOLD)
    await world.run()
    world.apply(_HEAD + "levels: []")
    await world.run()
    assert world.gangs == ["b", "a"]


async def test_without_a_document_the_default_applies_again() -> None:
    world = _World()
    world.apply(_GOLD)
    await world.run()
    world.policies.replace([])
    await world.run()
    assert world.gangs == ["a", "b"]
    assert world.policies.policy.queues is DEFAULT_QUEUES


async def test_the_size_of_a_vc_is_counted() -> None:
    world = _World(topology=a_cluster("1 racks x 4 nodes x 4").promising("a", node=4).build())
    world.apply(_FILL)
    await world.run()
    ranking = world.planner.planner.ranking
    _, standing = ranking.in_order()[0]
    assert [part.value for part in standing.parts] == [0.5]


@pytest.mark.parametrize("worth", ["fill: 1h", "class: 1h"])
async def test_a_formula_may_use_a_factor_without_a_worth(worth: str) -> None:
    world = _World(topology=a_cluster("1 racks x 4 nodes x 4").promising("a", node=4).build())
    level = f"{{name: all, strategy: formula, worth: {{{worth}}}, formula: '3600.0 * fill'}}"
    world.apply(_HEAD + f"levels: [{level}]")
    await world.run()
    _, standing = world.planner.planner.ranking.in_order()[0]
    assert standing.credit == 1800.0


async def test_a_formula_without_a_worth_for_recent_use_reads_the_history() -> None:
    world = _World()
    until = datetime(2026, 5, 31, 20, 0, tzinfo=UTC)
    world.history.runs["run-alice"] = _use("alice", hours=10, until=until)
    level = "{name: all, strategy: formula, worth: {class: 48h}, formula: '172800.0 * fairShare'}"
    world.apply(_HEAD + f"levels: [{level}]")
    await world.order.read_use()
    await world.run()
    assert world.gangs == ["b", "a"]


async def test_recent_use_costs_and_a_hung_history_keeps_what_was_known() -> None:
    world = _World()
    until = datetime(2026, 5, 31, 20, 0, tzinfo=UTC)
    world.history.runs["run-alice"] = _use("alice", hours=10, until=until)
    world.apply(_FAIR)
    await world.order.read_use()
    await world.run()
    assert world.gangs == ["b", "a"]
    world.history.is_away = True
    world.time.advance(days=1)
    await world.order.read_use()
    await world.order.refresh()
    assert world.gangs == ["b", "a"]
    world.history.is_away = False
    world.time.advance(days=70)
    await world.order.read_use()
    await world.order.refresh()
    assert world.gangs == ["a", "b"], "ten half-lives later"


async def test_use_is_read_again_after_the_clock_was_wrong() -> None:
    world = _World()
    until = datetime(2026, 5, 31, 20, 0, tzinfo=UTC)
    world.history.runs["run-alice"] = _use("alice", hours=4, until=until)
    world.apply(_FAIR)
    for days in (0, 365, -365):
        world.time.advance(days=days)
        await world.order.read_use()
        await world.run()
    assert world.gangs == ["b", "a"]
    world.history.runs["run-bob"] = _use("bob", hours=10, until=until)
    await world.order.read_use()
    await world.order.refresh()
    assert world.gangs == ["b", "a"], "what was read is not read again"
    world.time.advance(days=365)
    await world.order.read_use()
    world.time.advance(days=-365)
    await world.order.read_use()
    await world.order.refresh()
    assert world.gangs == ["a", "b"]


async def test_a_history_that_hangs_holds_up_no_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = _World()

    async def hang(since: datetime, until: datetime) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError("never set")

    monkeypatch.setattr(world.history, "hours_between", hang)
    world.apply(_FAIR)
    await world.run()
    world.apply(_GOLD)
    await world.run()
    assert world.gangs == ["b", "a"]
