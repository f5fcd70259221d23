"""kube-scheduler's words and ours."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from extender import wire
from extender.cells.model import MemberRequest, Place, Placement, ReasonCode, Wait
from kube import marks
from kube.pods import ManagedPod, read_pod
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid
from service.bodies import parse_body

REQUEST = MemberRequest(
    member=PodUid("u"), gang=GangKey("lab", "bert"), leaf_count=8, gang_leaf_counts=(8, 8)
)


def names(*nodes: str) -> wire.FilterArguments:
    """A question in the names-only form."""
    return wire.FilterArguments.model_validate({"Pod": {}, "Nodes": None, "NodeNames": nodes})


def whole(*nodes: dict[str, Any]) -> wire.FilterArguments:
    """A question that carries whole nodes."""
    items = {"metadata": {}, "items": list(nodes)}
    return wire.FilterArguments.model_validate({"Pod": {}, "Nodes": items, "NodeNames": None})


def a_managed_pod(
    *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> ManagedPod:
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    pod = read_pod(
        {
            "metadata": {
                "name": "bert-0",
                "namespace": "lab",
                "uid": "u",
                "labels": labels or {},
                "annotations": annotations or {},
            },
            "spec": {"containers": [{"name": "main", "resources": limits}]},
        }
    )
    assert pod
    return pod


def test_a_placed_member_is_left_one_node() -> None:
    decision = Place(request=REQUEST, placement=Placement(node=NodeName("n1"), leaf_cells=(0,)))
    assert wire.filter_answer(decision, names("n0", "n1")) == {
        "NodeNames": ["n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    decision = Place(request=REQUEST, placement=Placement(node=NodeName("n1"), leaf_cells=(0,)))
    nodes = [
        {"metadata": {"name": name, "labels": {"x": "y"}}, "spec": {}} for name in ("n0", "n1")
    ]
    answer = wire.filter_answer(decision, whole(*nodes))

    assert answer["Nodes"] == {"items": [nodes[1]]}
    assert "NodeNames" not in answer


def test_a_waiting_member_is_told_the_same_at_every_node() -> None:
    decision = Wait(request=REQUEST, code=ReasonCode.NO_ROOM, reason="no room")
    answer = wire.filter_answer(decision, names("n0", "n1"))

    assert answer["NodeNames"] == []
    assert answer["FailedAndUnresolvableNodes"] == {"n0": "no room", "n1": "no room"}


def test_scores_are_whole_numbers() -> None:
    scores = wire.prioritize_answer([NodeName("n0"), NodeName("n1")], NodeName("n1"))
    assert scores == [{"Host": "n0", "Score": 0}, {"Host": "n1", "Score": 10}]


@pytest.mark.parametrize(
    "lists", [{}, {"Nodes": None, "NodeNames": None}, {"Nodes": {"items": None}}]
)
def test_null_lists_are_empty_lists(lists: dict[str, Any]) -> None:
    arguments = parse_body(wire.FilterArguments, orjson.dumps({"Pod": {}, **lists}))
    assert arguments.candidate_nodes == {}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"nonsense", "the body is not JSON"),
        (b"[]", "must be a mapping, not"),
        (b'{"NodeNames": 7}', "Pod: is required; NodeNames: must be a list, not"),
        (b'{"Pod": {}, "NodeNames": [7]}', "NodeNames[0]: must be text, not"),
    ],
    ids=["not JSON", "a list", "two problems", "a number for a name"],
)
def test_garbage_is_refused_with_every_path(body: bytes, told: str) -> None:
    with pytest.raises(RequestError) as error:
        parse_body(wire.FilterArguments, body)
    assert told in str(error.value)


def test_members_of_a_labelled_gang_are_alike() -> None:
    labels = {marks.GANG_LABEL: "bert", marks.GANG_SIZE_LABEL: "2"}
    assert wire.to_member_request(a_managed_pod(labels=labels)) == REQUEST


def test_the_engine_is_told_when_a_pod_was_created() -> None:
    pod = replace(a_managed_pod(), created=1794823200.0)

    assert wire.to_member_request(pod).created == 1794823200.0


def test_hived_tells_what_each_member_asks_for() -> None:
    spec = (
        "virtualCluster: lab\npriority: 0\nleafCellNumber: 8\n"
        "affinityGroup: {name: bert, members: [{podNumber: 1, leafCellNumber: 8},"
        " {podNumber: 2, leafCellNumber: 1}]}"
    )
    request = wire.to_member_request(a_managed_pod(annotations={marks.HIVED_SPEC_ANNOTATION: spec}))

    assert sorted(request.gang_leaf_counts) == [1, 1, 8]


def test_a_gang_whose_size_only_an_object_tells_is_placed_member_by_member() -> None:
    pod = a_managed_pod(labels={marks.COSCHEDULING_LABEL: "bert"})
    request = wire.to_member_request(pod)

    assert request.gang == GangKey("lab", "bert/bert-0")
    assert request.gang_leaf_counts == (8,)


def test_a_bound_pod_carries_its_placement_for_us_and_for_hived() -> None:
    placement = Placement(node=NodeName("n1"), leaf_cells=(4, 5))
    annotations = wire.to_annotations(placement)

    assert annotations["cellgate.io/placement"] == '{"node":"n1","leafCells":[4,5]}'
    assert annotations["hivedscheduler.microsoft.com/pod-leaf-cell-isolation"] == "4,5"
    assert "hivedscheduler.microsoft.com/pod-bind-info" in annotations
