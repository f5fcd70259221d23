"""kube-scheduler's words and ours."""

from typing import Any

import orjson
import pytest

from extender.verbs import wire
from policy.errors import RequestError
from policy.submission import NodeName, PodUid
from service.bodies import parse_body


def names(*nodes: str) -> wire.FilterArguments:
    """A question in the names-only form."""
    return wire.FilterArguments.model_validate({"Pod": {}, "Nodes": None, "NodeNames": nodes})


def whole(*nodes: dict[str, Any]) -> wire.FilterArguments:
    """A question that carries whole nodes."""
    items = {"metadata": {}, "items": list(nodes)}
    return wire.FilterArguments.model_validate({"Pod": {}, "Nodes": items, "NodeNames": None})


def test_a_placed_member_is_left_one_node() -> None:
    assert wire.chosen_answer(NodeName("n1"), names("n0", "n1")) == {
        "NodeNames": ["n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    nodes = [
        {"metadata": {"name": name, "labels": {"x": "y"}}, "spec": {}} for name in ("n0", "n1")
    ]
    answer = wire.chosen_answer(NodeName("n1"), whole(*nodes))

    assert answer["Nodes"] == {"items": [nodes[1]]}
    assert "NodeNames" not in answer


def test_a_waiting_member_is_told_why_once_and_left_no_node() -> None:
    answer = wire.wait_answer("no room", names("n0", "n1"))

    assert answer["NodeNames"] == []
    assert answer["FailedAndUnresolvableNodes"] == {"n0": "no room"}


def test_victims_are_named_in_the_short_form_whatever_form_was_asked() -> None:
    for body in (
        {"NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}},
        {"NodeNameToMetaVictims": None, "NodeNameToVictims": {"n0": {"Pods": None}}},
    ):
        asked = parse_body(wire.PreemptArguments, orjson.dumps({"Pod": {}, **body}))
        assert asked.candidate_nodes == ["n0"]
    assert wire.victims_answer(NodeName("n0"), [PodUid("v")]) == {
        "NodeNameToMetaVictims": {"n0": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}}
    }


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
        (b'{"Pod": {}, "NodeNames": [7]}', "NodeNames[0]: must be a string, not"),
    ],
    ids=["not JSON", "a list", "two problems", "a number for a name"],
)
def test_garbage_is_refused_with_every_path(body: bytes, told: str) -> None:
    with pytest.raises(RequestError) as error:
        parse_body(wire.FilterArguments, body)
    assert told in str(error.value)


def test_the_case_of_a_key_does_not_matter_and_gos_own_name_wins() -> None:
    body = b'{"podname": "bert", "PODNAMESPACE": "lab", "podUid": "u", "node": "n0", "Node": "n1"}'
    asked = parse_body(wire.BindArguments, body)
    assert (asked.name, asked.namespace, asked.uid, asked.node) == ("bert", "lab", "u", "n1")

    victims = b'{"pod": {}, "nodenametometavictims": {"n0": {"pods": [{"uid": "v"}]}}}'
    assert parse_body(wire.PreemptArguments, victims).candidate_nodes == ["n0"]
    asked_again = parse_body(wire.FilterArguments, b'{"pod": {}, "nodenames": ["n0", "n1"]}')
    assert list(asked_again.candidate_nodes) == ["n0", "n1"]
