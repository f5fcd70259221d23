"""The leader's notes about nodes: all at first, then what changes; nothing is lost to a fault."""

import pytest

from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from extender.room.cluster_room import ClusterRoom
from extender.upkeep.node_recorder import NodeRecorder
from policy.errors import BackendError
from policy.submission import NodeName
from tests.support.kube.nodes import a_node
from tests.support.state.charges import TERM
from tests.support.twins.seen_nodes import MemorySeenNodes


class World:
    """A cluster of some nodes, and what its leader notes."""

    def __init__(self, *names: str) -> None:
        self.cluster = Cluster(lease_seconds=60, journal=NoJournal())
        for name in names:
            self.join(name)
        self.seen = MemorySeenNodes()
        self.room = ClusterRoom()
        self.recorder = NodeRecorder(
            self.seen, cluster=self.cluster, room=self.room, term=lambda: TERM
        )

    def join(self, name: str) -> None:
        self.cluster.observe_node(a_node(name).read())

    def noted(self) -> dict[str, bool]:
        """Whether each node that was noted is there."""
        return {name: row.left_at is None for (name, _), row in self.seen.rows.items()}


async def test_a_term_begins_with_all_nodes_and_goes_on_with_changes() -> None:
    world = World("n1", "n2")
    await world.recorder.write()
    assert world.noted() == {"n1": True, "n2": True}
    world.join("n3")
    world.cluster.forget_node(NodeName("n1"))
    await world.recorder.write()
    assert world.noted() == {"n1": False, "n2": True, "n3": True}


async def test_what_nodes_have_of_cpu_and_memory_is_noted_when_it_changes() -> None:
    world = World("n1")
    await world.recorder.write()
    (row,) = world.seen.rows.values()
    assert (row.cpu, row.memory) == (None, None)
    world.room.put_node(NodeName("n1"), {"cpu": 64_000, "memory": 2**38})
    await world.recorder.write()
    (row,) = world.seen.rows.values()
    assert (row.cpu, row.memory) == (64_000, 2**38)


async def test_nodes_that_left_before_the_term_are_noted_as_gone() -> None:
    world = World("n1", "n2")
    await world.recorder.write()
    later = World("n2")
    later.seen.rows = world.seen.rows
    await later.recorder.write()
    assert later.noted() == {"n1": False, "n2": True}


async def test_what_could_not_be_written_is_written_later() -> None:
    world = World("n1")
    world.seen.fails = True
    with pytest.raises(BackendError):
        await world.recorder.write()
    world.cluster.forget_node(NodeName("n1"))
    world.join("n2")
    world.seen.fails = False
    await world.recorder.write()
    assert world.noted() == {"n2": True}


async def test_many_nodes_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.upkeep.node_recorder._AT_ONCE", 2)
    world = World(*(f"n{index}" for index in range(5)))
    await world.recorder.write()
    assert len(world.noted()) == 5
