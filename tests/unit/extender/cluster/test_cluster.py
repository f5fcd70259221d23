"""The one door to the engine: cells follow the nodes, and only where nodes matter to them."""

from dataclasses import replace

import pytest

from extender.cells.model import MemberRequest, PlacedMember
from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from tests.support.cells.engine_calls import check, list_cells
from tests.support.kube.nodes import RACK_LABEL, a_node
from tests.support.policy.cluster_texts import derived_text


def node_of(index: int) -> KubeNode:
    node = a_node(f"node-{index:02}").of_type("A100").in_rack(f"rack-{index // 2}")
    return node.read()


@pytest.fixture
def cluster() -> Cluster:
    """Two racks of two nodes, derived from their labels, and one pod that runs."""
    cluster = Cluster(lease_seconds=60, journal=NoJournal())
    for index in range(4):
        cluster.observe_node(node_of(index))
    cluster.use_document(derived_text(default=4))
    request = MemberRequest(
        member=PodUid("a"), gang=GangKey("default", "a"), leaf_count=8, gang_leaf_counts=(8,)
    )
    place = Placement(node=NodeName("node-00"), leaf_cells=tuple(range(8)))
    cluster.observe_bound(PlacedMember(request=request, placement=place))
    return cluster


def relabel(cluster: Cluster, **labels: str) -> None:
    node = node_of(3)
    cluster.observe_node(replace(node, labels={**node.labels, **labels}))


def test_a_label_that_names_no_level_moves_nobody(cluster: Cluster) -> None:
    relabel(cluster, driver="550")
    stale = [cluster.is_stale]
    assert cluster.refresh_topology() == []
    assert [*stale, cluster.is_stale] == [True, False]
    assert cluster.has_place(PodUid("a"))


def test_a_node_that_moves_to_another_rack_moves_its_cells_and_nobody_elsewhere(
    cluster: Cluster,
) -> None:
    relabel(cluster, **{RACK_LABEL: "rack-0"})
    assert cluster.refresh_topology() == []
    assert not cluster.is_stale
    assert [len(rack.children) for rack in list_cells(cluster._engine)] == [3, 1]
    check(cluster._engine)


def test_another_document_that_means_the_same_cells_is_used(cluster: Cluster) -> None:
    (effect,) = cluster.use_document(derived_text(default=4))
    assert effect.gang == GangKey("default", "a")
