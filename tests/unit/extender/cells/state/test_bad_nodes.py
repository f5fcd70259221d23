"""The index of nodes with bad leaf cells agrees with the cells, whatever was observed before."""

import random

import pytest

from extender.cells.model import NodeCell
from extender.cells.state.allocation_table import AllocationTable
from policy.submission import NodeName
from tests.support.cells.builders import a_cluster, a_gang, a_node_cell
from tests.support.cells.engine_world import EngineWorld


def _observed(name: str, random_: random.Random) -> NodeCell:
    state = random_.choice(["healthy", "healthy", "not ready", "quarantined", "partly bad"])
    return a_node_cell(
        name,
        is_healthy=state != "not ready",
        is_quarantined=state == "quarantined",
        bad=(0,) if state == "partly bad" else (),
    )


def _scanned(table: AllocationTable) -> list[tuple[NodeName, bool]]:
    found = [
        (not cell.is_quarantined, node)
        for tree in table.trees.values()
        for node, cell in tree.by_node.items()
        if cell.bad
    ]
    return [(node, not is_other) for is_other, node in sorted(found)]


@pytest.mark.parametrize("seed", range(5))
def test_it_agrees_with_all_cells_after_every_observation(seed: int) -> None:
    random_, world = random.Random(seed), EngineWorld(a_cluster("6 nodes x 2").promising("a"))
    table = world.engine._table
    chains = list(table.trees)
    for _ in range(60):
        node = f"n{random_.randrange(6)}"
        if random_.random() < 0.1:
            world.engine.forget_node(NodeName(node))
        else:
            world.engine.observe_node(_observed(node, random_))
        if random_.random() < 0.5:
            assert table.bad_nodes.first(chains, most=99) == _scanned(table)
            assert table.bad_nodes.count(chains) == len(_scanned(table))
    assert table.bad_nodes.first(chains, most=2) == _scanned(table)[:2]


def test_it_agrees_after_more_changes_than_the_log_keeps() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    table, chains = world.engine._table, list(world.engine._table.trees)
    assert table.bad_nodes.count(chains) == 0
    world.engine.observe_node(a_node_cell("n1", is_quarantined=True))
    for _ in range(30_000):
        table.changes.record(table.trees[chains[0]].by_node[NodeName("n0")])
    assert table.bad_nodes.first(chains, most=9) == [(NodeName("n1"), True)]
    world.ask(a_gang("bert").of(2, 2))
    assert table.bad_nodes.count(chains) == 1
