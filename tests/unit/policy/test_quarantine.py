"""Which nodes are quarantined: those that several workloads blame, and never many."""

from dataclasses import replace

import pytest

from policy.quarantine import (
    BlamedNode,
    QuarantineRule,
    StartFailure,
    find_avoided,
    find_bad_nodes,
)
from policy.submission import LeafType, NodeName, UserName

RULE = QuarantineRule(
    workloads=3, submitters=2, within_seconds=1800, fail_within_seconds=60, for_seconds=21_600
)
NOW = 10_000.0
NODES = {NodeName(f"n{index}"): LeafType("A100") for index in range(10)}


def _failed(workload: str, *, node: str = "n0", ago: float = 10, ran: float = 5) -> StartFailure:
    return StartFailure(
        node=NodeName(node),
        workload=workload,
        submitter=UserName(f"owner-of-{workload}"),
        at=NOW - ago,
        lasted_seconds=ran,
    )


def _found(*failures: StartFailure, quarantined: tuple[str, ...] = ()) -> list[str]:
    found = find_bad_nodes(
        failures, RULE, now=NOW, nodes=NODES, quarantined=tuple(map(NodeName, quarantined))
    )
    return [one.node for one in found]


THREE = tuple(map(_failed, ("a", "b", "c")))


def test_a_node_that_enough_workloads_blame_is_quarantined() -> None:
    found = find_bad_nodes(THREE, RULE, now=NOW, nodes=NODES, quarantined=())
    submitters = ("owner-of-a", "owner-of-b", "owner-of-c")
    workloads = ("a", "b", "c")
    assert found == [BlamedNode(node=NodeName("n0"), workloads=workloads, submitters=submitters)]


@pytest.mark.parametrize(
    ("submitters", "is_bad"),
    [
        (("ann", "ann", "ann"), False),
        (("ann", "ann", "bob"), True),
        (("system:serviceaccount:lab:x", "system:serviceaccount:lab:y") * 2, False),
        (("system:serviceaccount:lab:x", "system:serviceaccount:lab2:x") * 2, True),
    ],
    ids=["one user", "two users", "accounts of one namespace", "accounts of two namespaces"],
)
def test_a_submitter_counts_once_however_many_workloads_fail(
    submitters: tuple[str, ...], *, is_bad: bool
) -> None:
    failures = [
        replace(_failed(f"w{number}"), submitter=UserName(name))
        for number, name in enumerate(submitters)
    ]
    assert bool(_found(*failures)) is is_bad
    by_any = replace(RULE, submitters=1)
    assert find_bad_nodes(failures, by_any, now=NOW, nodes=NODES, quarantined=())


@pytest.mark.parametrize(
    "third",
    [
        _failed("b", ago=300),
        _failed("c", ago=1801),
        _failed("c", ago=-61),
        _failed("c", ran=61),
        _failed("c", node="n1"),
    ],
    ids=["same workload", "long ago", "in the future", "ran for a while", "elsewhere"],
)
def test_fewer_failures_at_start_are_not_enough(third: StartFailure) -> None:
    assert _found(*THREE[:2], third) == []


def test_a_workload_that_fails_on_one_node_after_the_other_is_to_blame_itself() -> None:
    assert _found(*THREE, _failed("c", node="n1", ago=200)) == []
    assert _found(*THREE, _failed("d"), _failed("c", node="n1", ago=200)) == ["n0"]


def test_the_member_that_fails_first_names_the_node() -> None:
    later = [replace(one, node=NodeName("n1"), at=one.at + 3) for one in THREE]
    assert _found(*THREE, *later) == ["n0"]


def test_members_that_fail_at_the_same_time_name_no_node() -> None:
    same = [replace(one, node=NodeName("n1")) for one in THREE]
    assert _found(*THREE, *same) == []


def test_a_kubelet_that_refuses_pods_is_to_blame_whatever_happens_elsewhere() -> None:
    refused = [replace(one, is_by_node=True) for one in THREE]
    elsewhere = [_failed(name, node=f"n{index}") for index, name in enumerate("abc", start=1)]
    assert _found(*refused, *elsewhere) == ["n0"]


def test_at_most_a_tenth_of_the_nodes_of_a_type_is_quarantined() -> None:
    worse = [_failed(name, node="n1") for name in "defg"]
    assert _found(*THREE, *worse) == ["n1"]
    assert _found(*THREE, *worse, quarantined=("n1",)) == []
    assert _found(*THREE, *worse, quarantined=("elsewhere",)) == ["n1"]


def test_a_node_that_is_gone_is_not_quarantined() -> None:
    assert _found(*(replace(one, node=NodeName("gone")) for one in THREE)) == []


def test_a_workload_avoids_the_node_that_it_blames_for_half_an_hour() -> None:
    assert find_avoided([_failed("a", ago=1799)], now=NOW) == ["n0"]
    assert find_avoided([_failed("a", ago=1801)], now=NOW) == []
    assert find_avoided([_failed("a", ran=61)], now=NOW) == []
    first = [_failed("a", ago=10), _failed("a", node="n1", ago=8)]
    assert find_avoided(first, now=NOW) == ["n0"], "the others followed"
    refused = [replace(_failed("a", node=node), is_by_node=True) for node in ("n2", "n1")]
    assert find_avoided(refused, now=NOW) == ["n1", "n2"]


def test_a_workload_that_fails_everywhere_avoids_no_node() -> None:
    assert find_avoided([_failed("a"), _failed("a", node="n1", ago=100)], now=NOW) == []
    assert find_avoided([_failed("a"), _failed("a", node="n1")], now=NOW) == []
