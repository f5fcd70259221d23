"""Worlds of documents and nodes, with hardware that does not exist."""

import pytest

from policy.cluster.document import LiveNode
from policy.errors import RequestError
from policy.submission import LeafType, NodeName
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.timemachine.worlds import an_arrival, fates_of, policy_of
from timemachine.model import World
from timemachine.play import play
from timemachine.worlds import AddedNodes, add_nodes, build_world

RACK, HOST, TYPE = "topology.kubernetes.io/rack", "kubernetes.io/hostname", "nvidia.com/gpu.product"
SIXTEEN = AddedNodes(number=3, leaf_type=LeafType("A100"))


def _node(name: str, rack: str, *, leaf_type: str = "A100", leaf_count: int = 8) -> LiveNode:
    labels = {RACK: rack, HOST: name, TYPE: leaf_type, "zone": "east"}
    return LiveNode(name=NodeName(name), labels=labels, leaf_counts={"nvidia.com/gpu": leaf_count})


NODES = [
    _node("n1", "r1"),
    _node("n2", "r1"),
    _node("n3", "r2"),
    _node("n4", "r2"),
    _node("old", "r3", leaf_type="V100", leaf_count=4),
]


def _sizes(world: World) -> dict[str, int]:
    return {node.name: node.leaf_count for node in world.nodes}


def test_world_has_the_cells_of_the_document_and_the_nodes() -> None:
    built = build_world(policy_of(cluster=derived_text(a=2)), NODES, title="now")
    assert _sizes(built.world) == {"n1": 8, "n2": 8, "n3": 8, "n4": 8, "old": 4}
    assert built.world.topology is not None
    assert list(built.world.topology.vcs) == ["a"]
    assert built.notes == ()


def test_promises_that_do_not_fit_are_noted() -> None:
    built = build_world(policy_of(cluster=derived_text(a=9)), NODES, title="now")
    assert "virtualClusters.a" in built.notes[0]


def test_without_a_document_all_nodes_are_open() -> None:
    idle = LiveNode(name=NodeName("cpu"))
    world = build_world(policy_of(), [*NODES, idle], title="now").world
    assert world.topology is None
    assert _sizes(world) == {"n1": 8, "n2": 8, "n3": 8, "n4": 8, "old": 4}
    gang = an_arrival("wide", 8, 8, 8, 8, vc="any", leaf_type=LeafType("A100"))
    assert len(fates_of(play([gang], world))["wide"].nodes) == 4


def test_added_nodes_are_like_the_others_of_their_type_in_racks_of_the_usual_size() -> None:
    added = add_nodes(policy_of(cluster=derived_text()), NODES, SIXTEEN)
    assert [(one.name, one.labels[RACK]) for one in added] == [
        ("added-1", "added-rack-1"),
        ("added-2", "added-rack-1"),
        ("added-3", "added-rack-2"),
    ]
    assert added[0].labels == {
        RACK: "added-rack-1",
        HOST: "added-1",
        TYPE: "A100",
        "zone": "east",
    }
    assert added[0].leaf_counts == {"nvidia.com/gpu": 8}


def test_added_nodes_back_promises_for_which_there_were_too_few() -> None:
    policy = policy_of(cluster=derived_text(a=7))
    gang = an_arrival("wide", 8, 8, 8, 8, 8)
    before = build_world(policy, NODES, title="now").world
    after = build_world(policy, NODES, title="more", added=[SIXTEEN]).world
    assert not fates_of(play([gang], before))["wide"].can_start
    assert fates_of(play([gang], after))["wide"].started == 0.0


def test_nodes_can_be_added_without_a_document() -> None:
    world = build_world(policy_of(), NODES, title="more", added=[SIXTEEN]).world
    assert list(_sizes(world))[-3:] == ["added-1", "added-2", "added-3"]


def test_added_nodes_keep_off_names_that_are_taken() -> None:
    nodes = [*NODES, _node("added-1", "added-rack-1"), _node("n6", "added-rack-1")]
    added = add_nodes(policy_of(cluster=derived_text()), nodes, SIXTEEN)
    assert [(one.name, one.labels[RACK]) for one in added] == [
        ("added-2", "added-rack-2"),
        ("added-3", "added-rack-2"),
        ("added-4", "added-rack-3"),
    ]


def test_nodes_of_an_unknown_type_cannot_be_added() -> None:
    wrong = AddedNodes(number=1, leaf_type=LeafType("H100"))
    with pytest.raises(RequestError, match=r'no node has leaf type "H100".* are A100, V100'):
        build_world(policy_of(cluster=derived_text()), NODES, title="more", added=[wrong])


def test_document_that_lists_its_cells_needs_no_nodes() -> None:
    policy = policy_of(cluster=hived_text(racks=1, a=1))
    world = build_world(policy, title="now").world
    assert _sizes(world) == {"node-00": 8, "node-01": 8}
    half = build_world(policy, [_node("node-01", "")], title="half").world
    assert _sizes(half) == {"node-01": 8}


def test_nodes_cannot_be_added_to_a_document_that_lists_its_cells() -> None:
    policy = policy_of(cluster=hived_text(racks=1, a=1))
    with pytest.raises(RequestError, match="add the nodes to a copy of it"):
        build_world(policy, title="more", added=[SIXTEEN])
