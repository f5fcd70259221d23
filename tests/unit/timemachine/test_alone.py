"""A VC alone with what it was promised."""

from policy.submission import VcName
from tests.support.cells.builders import a_cluster, nodes_of
from tests.support.timemachine.worlds import HOUR, a_world, an_arrival, two_vcs
from timemachine.alone import alone_in, anomaly_of, arrivals_of, promised_vcs
from timemachine.compare import compare
from timemachine.comparison import Anomaly, Side
from timemachine.model import Arrival, World
from timemachine.play import play

_A, _B = VcName("a"), VcName("b")


def _side(world: World, *arrivals: Arrival) -> Side:
    run = play(arrivals, world)
    return compare(run, run, source="test").after


def test_a_vc_alone_has_its_nodes_and_no_others() -> None:
    alone = alone_in(a_world(two_vcs()), _B)
    assert alone.topology is not None
    assert [*alone.topology.vcs] == [_B]
    assert len(nodes_of(alone.topology)) == 2
    assert [node.leaf_count for node in alone.nodes] == [8, 8]
    assert alone.title == "VC b alone"


def test_cells_of_several_levels_do_not_overlap() -> None:
    cluster = a_cluster("2 racks x 4 nodes x 8").promising("a", rack=1, node=2)
    alone = alone_in(a_world(cluster), _A)
    assert len(alone.nodes) == 6
    assert promised_vcs(alone) == [_A]


def test_parts_of_a_node_are_less_than_the_node() -> None:
    cluster = a_cluster("1 rack x 2 nodes x 2 sockets x 4").promising("a", socket=1)
    alone = alone_in(a_world(cluster), _A)
    assert [node.leaf_count for node in alone.nodes] == [4]
    assert _side(alone, an_arrival("fits", 4)).all.never_started == 0
    assert _side(alone, an_arrival("too large", 8)).all.never_started == 1


def test_a_pinned_cell_belongs_to_the_promise() -> None:
    cluster = a_cluster("2 racks x 2 nodes x 8").promising("a", node=1, pinned=["P"]).pin("r1", "P")
    alone = alone_in(a_world(cluster), _A)
    assert len(alone.nodes) == 3


def test_without_a_cluster_document_nothing_is_promised() -> None:
    world = a_world(two_vcs())
    assert promised_vcs(world) == [_A, _B]
    assert promised_vcs(World(title="", policy=world.policy, topology=None, nodes=())) == []


def test_a_vc_that_waits_longer_among_others_is_an_anomaly() -> None:
    together = _side(a_world(two_vcs()), an_arrival("one", 8, 8), an_arrival("two", 8, 8, at=60.0))
    alone = _side(a_world(two_vcs()), an_arrival("one", 8, 8), an_arrival("two", 8, 8, at=HOUR))
    assert anomaly_of(_A, alone, together) is None
    assert anomaly_of(_B, together, alone) is None
    found = anomaly_of(_A, together, alone)
    assert found is not None
    assert found == Anomaly(
        vc="a",
        mean_seconds=together.all.mean - alone.all.mean,
        p95_seconds=together.all.p95 - alone.all.p95,
    )
    assert found.mean_seconds > 1000.0


def test_only_the_gangs_of_the_vc_are_played_alone() -> None:
    arrivals = [an_arrival("one"), an_arrival("other", vc="b")]
    assert [one.gang.name for one in arrivals_of(arrivals, _B)] == ["other"]
