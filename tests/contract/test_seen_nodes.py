"""The nodes that were seen lately, on memory, on our embedded Postgres and on a stock server."""

from dataclasses import replace

import pytest

from policy.cluster.document import LiveNode, NodeCount
from policy.errors import ConflictError
from policy.submission import NodeName
from state.nodes.postgres import PostgresSeenNodes
from state.nodes.seen_nodes import SeenNodes
from tests.support.clocks import FrozenTime
from tests.support.state.charges import TERM
from tests.support.twins.seen_nodes import MemorySeenNodes

GPU = "nvidia.com/gpu"


@pytest.fixture(params=["memory", "embedded", "stock"])
def seen(request: pytest.FixtureRequest, clock: FrozenTime) -> SeenNodes:
    if request.param == "memory":
        return MemorySeenNodes(clock)
    name = "database" if request.param == "embedded" else "stock_database"
    return PostgresSeenNodes(request.getfixturevalue(name).pool, clock=clock)


def a_node(name: str, *, rack: str = "r1", devices: int = 8) -> LiveNode:
    labels = {"rack": rack, "type": "A100", "zone": "a"}
    return LiveNode(name=NodeName(name), labels=labels, leaf_counts={GPU: devices})


def counted(number: int, *, devices: int = 8, **labels: str) -> NodeCount:
    return NodeCount(labels=labels, leaf_counts={GPU: devices}, number=number)


async def test_nodes_are_counted_by_devices_and_the_labels_asked_for(seen: SeenNodes) -> None:
    nodes = [a_node("n1"), a_node("n2"), a_node("n3", rack="r2"), a_node("n4", devices=4)]
    await seen.observe(nodes, gone=[], term=TERM)
    assert await seen.count(["rack", "missing"]) == (
        counted(1, devices=4, rack="r1"),
        counted(2, rack="r1"),
        counted(1, rack="r2"),
    )
    assert await seen.count([]) == (counted(1, devices=4), counted(3))


async def test_the_nodes_that_are_there_are_told_as_they_are_now(seen: SeenNodes) -> None:
    nodes = [a_node("n2", devices=4), a_node("n1"), a_node("n3")]
    await seen.observe(nodes, gone=[], term=TERM)
    changed = replace(a_node("n2", rack="r2"), cpu=1000, memory=7)
    await seen.observe([changed], gone=[NodeName("n3")], term=TERM)
    assert await seen.present() == (a_node("n1"), changed)


async def test_a_node_that_is_gone_counts_for_seven_days(
    seen: SeenNodes, clock: FrozenTime
) -> None:
    await seen.observe([a_node("n1"), a_node("n2")], gone=[], term=TERM)
    await seen.observe([], gone=[NodeName("n2"), NodeName("never seen")], term=TERM)
    clock.advance(days=6)
    assert await seen.count([]) == (counted(2),)
    await seen.observe([], gone=[NodeName("n2")], term=TERM)
    clock.advance(days=1, seconds=1)
    assert await seen.count([]) == (counted(1),)
    await seen.observe([a_node("n2")], gone=[], term=TERM)
    assert await seen.count([]) == (counted(2),)


async def test_a_node_with_fewer_devices_counts_as_it_was(
    seen: SeenNodes, clock: FrozenTime
) -> None:
    await seen.observe([a_node("n1")], gone=[], term=TERM)
    await seen.observe([a_node("n1", devices=6, rack="r2")], gone=[], term=TERM)
    assert await seen.count(["rack"]) == (counted(1, rack="r1"),)
    clock.advance(days=8)
    assert await seen.count(["rack"]) == (counted(1, devices=6, rack="r2"),)
    await seen.observe([a_node("n1", devices=8, rack="r3")], gone=[], term=TERM)
    assert await seen.count(["rack"]) == (counted(1, rack="r3"),)


async def test_a_new_leader_tells_which_nodes_are_left(seen: SeenNodes, clock: FrozenTime) -> None:
    await seen.observe([a_node("n1"), a_node("n2")], gone=[], term=TERM)
    later = replace(TERM, epoch=TERM.epoch + 1)
    await seen.observe([a_node("n1", rack="r5")], gone=[], term=later)
    await seen.retain([NodeName("n1")], term=later)
    assert await seen.count(["rack"]) == (counted(1, rack="r1"), counted(1, rack="r5"))
    clock.advance(days=8)
    assert await seen.count(["rack"]) == (counted(1, rack="r5"),)


async def test_an_earlier_leader_cannot_write(seen: SeenNodes) -> None:
    await seen.observe([a_node("n1")], gone=[], term=TERM)
    earlier = replace(TERM, epoch=TERM.epoch - 1)
    with pytest.raises(ConflictError):
        await seen.observe([], gone=[NodeName("n1")], term=earlier)
    with pytest.raises(ConflictError):
        await seen.retain([], term=earlier)
    assert await seen.count([]) == (counted(1),)


async def test_labels_that_postgres_cannot_store_do_no_harm(seen: SeenNodes) -> None:
    node = replace(a_node("n1"), labels={"rack": "r\0", "\ud800": "x"})
    await seen.observe([node], gone=[NodeName("\0")], term=TERM)
    assert [one.number for one in await seen.count(["zone", "\0"])] == [1]


async def test_the_most_that_one_node_has_is_known_if_it_is_known_of_all(seen: SeenNodes) -> None:
    nodes = [replace(a_node(f"n{cpu}"), cpu=cpu, memory=2**40 - cpu) for cpu in (8, 64, 32)]
    await seen.observe(nodes, gone=[], term=TERM)
    assert await seen.count([]) == (replace(counted(3), cpu=64, memory=2**40 - 8),)
    await seen.observe([replace(a_node("n8"), cpu=128)], gone=[], term=TERM)
    assert await seen.count([]) == (replace(counted(3), cpu=128, memory=None),)


async def test_the_version_grows_with_each_change_and_with_nothing_else(seen: SeenNodes) -> None:
    versions = [await seen.version()]
    node = replace(a_node("n1"), cpu=8)
    for nodes, gone in (
        ([node], []),
        ([replace(node, cpu=9)], []),
        ([a_node("n1", rack="r2"), a_node("n2")], []),
        ([], [NodeName("n2")]),
    ):
        await seen.observe(nodes, gone=gone, term=TERM)
        versions.append(await seen.version())
        await seen.observe(nodes, gone=gone, term=TERM)
        assert await seen.version() == versions[-1], "nothing is new"
    await seen.retain([NodeName("n1")], term=TERM)
    assert await seen.version() == versions[-1]
    await seen.retain([], term=TERM)
    versions.append(await seen.version())
    assert versions == sorted(set(versions))
