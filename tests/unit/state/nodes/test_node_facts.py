"""How large gangs can be: how long that counts, and what a fault changes."""

import asyncio
from collections.abc import Sequence

import pytest

from kube.follow.policies import PolicySink
from policy.capacity import Share
from policy.cluster.document import LiveNode, NodeCount
from policy.submission import NodeName
from state.nodes import node_facts
from state.nodes.node_facts import NodeFacts
from tests.support.clocks import FrozenSeconds
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.state.charges import TERM
from tests.support.twins.seen_nodes import MemorySeenNodes


class World:
    """A Cluster document, and nodes of eight leaf cells."""

    def __init__(self, text: str, seen: MemorySeenNodes | None = None) -> None:
        self.policies = PolicySink(KeptEvents())
        self.apply(text)
        self.seen = seen or MemorySeenNodes()
        self.clock = FrozenSeconds()
        self.facts = NodeFacts(
            self.seen, document=lambda: self.policies.policy.cluster, monotonic=self.clock
        )
        self.policies.on_change.append(self.facts.wake)

    def apply(self, text: str) -> None:
        self.policies.upsert(a_policy_map("cluster", text))

    async def join(self, *names: str) -> None:
        labels = {"nvidia.com/gpu.product": "A100"}
        nodes = [
            LiveNode(name=NodeName(name), labels=labels, leaf_counts={"nvidia.com/gpu": 8})
            for name in names
        ]
        await self.seen.observe(nodes, gone=[], term=TERM)

    def leaf_count(self) -> int | None:
        """How many leaf cells there are, if that is known."""
        capacity = self.facts.capacity
        return None if capacity is None else capacity.chains[0].all_cells.leaf_count


async def test_facts_are_those_of_the_last_read_and_count_for_two_minutes() -> None:
    world = World(derived_text(lab=1))
    await world.join("n1")
    assert world.leaf_count() is None
    await world.facts.refresh()
    assert world.leaf_count() == 8
    await world.join("n2")
    world.seen.fails = True
    await world.facts.refresh()
    assert world.leaf_count() == 8
    world.clock.seconds += 121
    assert world.leaf_count() is None
    world.seen.fails = False
    await world.facts.refresh()
    assert world.leaf_count() == 16


async def test_a_changed_document_is_read_at_once() -> None:
    world = World(derived_text(lab=1))
    await world.join("n1", "n2")
    task = asyncio.create_task(world.facts.run())
    try:
        async with asyncio.timeout(5):
            while world.leaf_count() is None:
                await asyncio.sleep(0)
            world.apply(derived_text(lab=2))
            assert world.leaf_count() is None
            while world.leaf_count() is None:
                await asyncio.sleep(0)
        capacity = world.facts.capacity
        assert capacity is not None
        assert capacity.chains[0].of_vc == {"lab": Share(16, 8)}
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_document_that_lists_its_cells_needs_no_nodes() -> None:
    world = World(hived_text(lab=1))
    world.seen.fails = True
    await world.facts.refresh()
    assert world.leaf_count() == 32


async def test_a_database_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(MemorySeenNodes):
        async def count(self, keys: Sequence[str]) -> tuple[NodeCount, ...]:
            await asyncio.Event().wait()
            return ()

    monkeypatch.setattr(node_facts, "_READ_SECONDS", 0.01)
    world = World(derived_text(lab=1), Hanging())
    await world.facts.refresh()
    assert world.facts.capacity is None
    assert await world.facts.count([], within_seconds=0.01) is None


class Counted(MemorySeenNodes):
    """Counts how often the nodes are counted."""

    times = 0

    async def count(self, keys: Sequence[str]) -> tuple[NodeCount, ...]:
        self.times += 1
        return await super().count(keys)


async def test_nodes_are_counted_again_only_if_they_have_changed_or_after_an_hour() -> None:
    seen = Counted()
    world = World(derived_text(lab=1), seen)
    await world.join("n1")
    for _ in range(100):
        world.clock.seconds += 30
        await world.facts.refresh()
        assert world.leaf_count() == 8
    assert seen.times == 1
    await world.join("n2")
    await world.facts.refresh()
    assert (world.leaf_count(), seen.times) == (16, 2)
    world.apply(derived_text(lab=2))
    await world.facts.refresh()
    assert (world.leaf_count(), seen.times) == (16, 3)
    world.clock.seconds += 3600
    await world.facts.refresh()
    assert (world.leaf_count(), seen.times) == (16, 4)
