"""Many possible victims: the cheapest cells are chosen first, and the gangs on them end."""

import pytest

from extender.cells.budget import VICTIM_LOOKS
from extender.cells.model import Preempt, ReasonCode, Wait
from tests.support.cells.builders import ClusterBuilder, GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld

_LEAVES = tuple(range(8))


def crowded(cluster: ClusterBuilder, *, spared: int = 0, priority: int = -1) -> EngineWorld:
    """Every leaf cell has a young gang of its own; each of the first nodes has an old one."""
    world = EngineWorld(cluster)
    for node in world.nodes[:spared]:
        world.run(a_gang(f"old-{node}").of(8).at(priority).created(1), (node, _LEAVES))
    for node in world.nodes[spared:]:
        for leaf in _LEAVES:
            small = a_gang(f"small-{node}-{leaf}").at(priority).created(50)
            world.run(small, (node, (leaf,)))
    assert len(world.engine.gangs()) > VICTIM_LOOKS
    return world


def victims(world: EngineWorld, gang: GangBuilder, nodes: list[str] | None = None) -> list[str]:
    decision = world.ask(gang, nodes=nodes)
    assert isinstance(decision, Preempt), decision
    assert len(decision.seats) == len(gang.request.gang_leaf_counts)
    world.apply(decision)
    return [victim.name for victim in decision.victims]


def test_a_crowd_in_another_chain_hides_no_victim() -> None:
    chains = a_cluster("1 nodes x 8", name="one", leaf_type="x")
    chains.chain("40 nodes x 8", name="two", leaf_type="y").promising("a", chain="one", node=1)
    world = crowded(chains, spared=1)

    assert victims(world, a_gang("urgent").of(8).at(5).typed("x")) == ["old-one-n0"]


@pytest.mark.parametrize("priority", [-1, 0])
def test_a_crowd_on_other_nodes_than_the_candidates_hides_no_victim(priority: int) -> None:
    world = crowded(a_cluster("40 nodes x 8").promising("a", node=40), spared=1, priority=priority)

    assert victims(world, a_gang("urgent").of(8).at(5), nodes=["n0"]) == ["old-n0"]


def test_a_crowd_outside_of_a_pinned_cell_hides_no_victim() -> None:
    cluster = a_cluster("40 nodes x 8").pin("n0", "PIN").promising("a", pinned=["PIN"])
    world = crowded(cluster, spared=1)

    assert victims(world, a_gang("urgent").of(8).at(5).pinned("PIN")) == ["old-n0"]


def test_one_old_gang_goes_rather_than_eight_young_ones() -> None:
    world = crowded(a_cluster("40 nodes x 8").promising("a", node=20), spared=1)

    assert victims(world, a_gang("urgent").of(8).at(5)) == ["old-n0"]


def test_one_wide_gang_goes_rather_than_many_narrow_ones() -> None:
    world = EngineWorld(a_cluster("320 nodes x 2").promising("a", node=320))
    wide = a_gang("wide").times(16, 2).at(-1).created(1)
    world.run(wide, *((node, (0, 1)) for node in world.nodes[:16]))
    for node in world.nodes[16:]:
        world.run(a_gang(f"narrow-{node}").of(2).at(-1).created(50), (node, (0, 1)))

    assert victims(world, a_gang("urgent").times(16, 2).at(5)) == ["wide"]


@pytest.mark.parametrize(
    ("vc", "sizes"),
    [
        ("a", (1, *(8,) * 20)),
        ("a", (8,) * 24),
        ("b", (3, 5) * 16),
        ("b", (7,) * 8 + (1,) * 8),
        ("b", (1, 2, 3, 4, 5, 6, 7, 8) * 3),
    ],
)
def test_a_gang_within_its_share_gets_it_from_a_crowd(vc: str, sizes: tuple[int, ...]) -> None:
    cluster = a_cluster("6 racks x 8 nodes x 8").promising("a", rack=3).promising("b", node=16)
    world = crowded(cluster)

    assert len(victims(world, a_gang("urgent").in_vc(vc).of(*sizes).at(5))) == sum(sizes)


def test_a_vc_that_uses_its_whole_share_waits_though_others_could_be_ended() -> None:
    cluster = a_cluster("41 nodes x 8").promising("a", node=1).promising("b", node=40)
    world = EngineWorld(cluster)
    world.place(a_gang("own").of(8).at(5))
    for node in world.nodes[1:]:
        for leaf in _LEAVES:
            world.run(a_gang(f"lent-{node}-{leaf}").in_vc("b").at(-1), (node, (leaf,)))

    decision = world.ask(a_gang("second").of(8).at(5))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.VC_FULL
