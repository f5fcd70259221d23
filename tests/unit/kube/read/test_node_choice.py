"""Which nodes a pod may use: as kube-scheduler would say."""

from typing import Any

import pytest

from kube.read.node_choice import NodeTraits, NodeWish, read_traits, read_wish


def _node(name: str = "n0", *, labels: dict[str, str] | None = None, **spec: Any) -> NodeTraits:
    return read_traits({"metadata": {"name": name, "labels": labels or {}}, "spec": spec})


def _wish(**spec: Any) -> NodeWish:
    return read_wish(spec)


def _wish_of_term(*requirements: dict[str, Any], fields: bool = False) -> NodeWish:
    term = {"matchFields" if fields else "matchExpressions": list(requirements)}
    return _wish_of_terms(term)


def _wish_of_terms(*terms: dict[str, Any]) -> NodeWish:
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return _wish(affinity=affinity)


TAINT = {"key": "team", "value": "lab", "effect": "NoSchedule"}


def test_a_pod_without_wishes_may_use_a_plain_node() -> None:
    assert _wish().suits(_node())


def test_every_label_of_a_selector_must_be_there() -> None:
    wish = _wish(nodeSelector={"zone": "a", "disk": "ssd"})
    assert wish.suits(_node(labels={"zone": "a", "disk": "ssd", "more": "x"}))
    assert not wish.suits(_node(labels={"zone": "a"}))


@pytest.mark.parametrize(
    ("operator", "values", "suits_a", "suits_none"),
    [
        ("In", ["a", "b"], True, False),
        ("NotIn", ["a"], False, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("Unheard", ["a"], False, False),
    ],
)
def test_requirements_on_labels(
    operator: str, values: list[str], suits_a: bool, suits_none: bool
) -> None:
    wish = _wish_of_term({"key": "zone", "operator": operator, "values": values})
    assert wish.suits(_node(labels={"zone": "a"})) == suits_a
    assert wish.suits(_node()) == suits_none


@pytest.mark.parametrize(
    ("operator", "label", "suits"),
    [("Gt", "5", True), ("Gt", "4", False), ("Lt", "3", True), ("Lt", "x", False)],
)
def test_requirements_on_numbers(operator: str, label: str, suits: bool) -> None:
    wish = _wish_of_term({"key": "cores", "operator": operator, "values": ["4"]})
    assert wish.suits(_node(labels={"cores": label})) == suits
    assert not wish.suits(_node())


def test_one_term_is_enough_and_an_empty_one_suits_nobody() -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    disk = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    assert _wish_of_terms(zone, disk).suits(_node(labels={"disk": "ssd"}))
    assert not _wish_of_terms({}).suits(_node())


def test_a_node_can_be_named() -> None:
    wish = _wish_of_term({"key": "metadata.name", "operator": "In", "values": ["n1"]}, fields=True)
    assert wish.suits(_node("n1"))
    assert not wish.suits(_node("n0"))


@pytest.mark.parametrize(
    ("toleration", "suits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "value": "lab"}, True),
        ({"key": "team", "value": "lab", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "lab", "effect": "NoExecute"}, False),
        ({"key": "team", "value": "other"}, False),
        ({"key": "zone", "operator": "Exists"}, False),
    ],
)
def test_a_taint_keeps_away_who_does_not_tolerate_it(
    toleration: dict[str, str], suits: bool
) -> None:
    assert _wish(tolerations=[toleration]).suits(_node(taints=[TAINT])) == suits
    assert not _wish().suits(_node(taints=[TAINT]))


def test_a_preference_keeps_nobody_away() -> None:
    assert _wish().suits(_node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]))


def test_a_cordoned_node_is_tainted() -> None:
    assert not _wish().suits(_node(unschedulable=True))
    assert _wish(tolerations=[{"operator": "Exists"}]).suits(_node(unschedulable=True))


def test_equal_wishes_are_one() -> None:
    first = _wish(nodeSelector={"a": "1", "b": "2"})
    assert first == _wish(nodeSelector={"b": "2", "a": "1"})
    assert hash(first) == hash(_wish(nodeSelector={"b": "2", "a": "1"}))
