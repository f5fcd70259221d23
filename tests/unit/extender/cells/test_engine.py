"""Gangs on nodes without a topology: placed whole or not at all, and no leaf cell twice."""

from dataclasses import replace

import pytest

from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, Place, Reason, ReasonCode, Reject, Wait
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid
from tests.support.cells.engine_calls import list_nodes, observe_bound

NODES = [NodeName("n0"), NodeName("n1"), NodeName("n2")]


def a_request(
    uid: str, *, gang: str = "bert", size: int = 1, leaves: int = 8, leaf_type: str | None = None
) -> MemberRequest:
    return MemberRequest(
        member=PodUid(uid),
        gang=GangKey("vision", gang),
        leaf_count=leaves,
        gang_leaf_counts=(leaves,) * size,
        leaf_type=LeafType(leaf_type) if leaf_type else None,
    )


def at(node: str, *leaf_cells: int) -> Placement:
    return Placement(node=NodeName(node), leaf_cells=leaf_cells)


ALL_OF_A_NODE = (0, 1, 2, 3, 4, 5, 6, 7)


@pytest.fixture
def engine() -> Engine:
    """Three nodes of eight leaf cells, all free."""
    engine = Engine(lease_seconds=60)
    for name in NODES:
        engine.observe_node(NodeCell(name=name, leaf_type=LeafType("A100"), leaf_count=8))
    return engine


def place(engine: Engine, request: MemberRequest, nodes: list[NodeName] = NODES) -> Placement:
    """Plan and apply; the member must get a place."""
    decision = engine.plan(request, candidate_nodes=nodes)
    assert isinstance(decision, Place), decision
    engine.apply(decision, now=0)
    return decision.placement


def test_the_tightest_node_that_fits_is_taken(engine: Engine) -> None:
    place(engine, a_request("a", gang="a", leaves=6))

    assert place(engine, a_request("b", gang="b", leaves=2)) == at("n0", 6, 7)
    assert place(engine, a_request("c", gang="c", leaves=2)) == at("n1", 0, 1)


def test_planning_changes_nothing(engine: Engine) -> None:
    before = list_nodes(engine), engine.gangs()

    engine.plan(a_request("a", size=3), candidate_nodes=NODES)

    assert (list_nodes(engine), engine.gangs()) == before


def test_the_first_member_makes_room_for_the_whole_gang(engine: Engine) -> None:
    decision = engine.plan(a_request("a", size=3), candidate_nodes=NODES)

    assert isinstance(decision, Place)
    assert decision.placement == at("n0", *ALL_OF_A_NODE)
    assert decision.others == (at("n1", *ALL_OF_A_NODE), at("n2", *ALL_OF_A_NODE))


def test_every_later_member_takes_a_place_that_is_held(engine: Engine) -> None:
    places = [place(engine, a_request(uid, size=3)).node for uid in ("a", "b", "c")]
    assert places == NODES


def test_a_gang_waits_when_only_part_of_it_fits(engine: Engine) -> None:
    place(engine, a_request("x", gang="x", leaves=1))
    request = a_request("a", size=3, leaf_type="A100")

    assert engine.plan(request, candidate_nodes=NODES) == Wait(
        request=request,
        reason=Reason(
            code=ReasonCode.NO_ROOM,
            arguments={
                "gang": "vision/bert",
                "needs": ((3, 8),),
                "members": 3,
                "leaf_type": "A100",
                "room": 2,
            },
            text="gang vision/bert needs 3 x 8 leaf cells of type A100, each member on one node; "
            "room for 2 of 3 members now; starts once enough leaf cells are free",
            change="starts once enough leaf cells are free",
        ),
    )


def test_a_leaf_type_that_no_node_has_waits(engine: Engine) -> None:
    decision = engine.plan(a_request("a", leaf_type="H100"), candidate_nodes=NODES)
    assert isinstance(decision, Wait)


def test_a_member_that_asks_again_gets_the_same_answer(engine: Engine) -> None:
    first = place(engine, a_request("a", size=2))
    assert place(engine, a_request("a", size=2)) == first


def test_a_node_that_is_not_offered_is_never_used(engine: Engine) -> None:
    place(engine, a_request("a"), nodes=[NODES[1]])
    decision = engine.plan(a_request("a"), candidate_nodes=[NODES[0]])

    assert decision == Wait(
        request=a_request("a"),
        reason=Reason(
            code=ReasonCode.NODE_NOT_OFFERED,
            arguments={"gang": "vision/bert", "node": "n1"},
            text="gang vision/bert has a place on node n1, but kube-scheduler does not offer this "
            "node to the pod; check the node's taints and the pod's node selector",
            change="check the node's taints and the pod's node selector",
        ),
    )


def test_a_gang_waits_when_its_members_would_have_to_leave_the_offered_nodes(
    engine: Engine,
) -> None:
    decision = engine.plan(a_request("a", size=2), candidate_nodes=[NODES[2]])
    assert isinstance(decision, Wait)


def test_a_member_beyond_the_gangs_size_is_turned_away(engine: Engine) -> None:
    place(engine, a_request("a"))
    decision = engine.plan(a_request("b"), candidate_nodes=NODES)

    assert decision == Wait(
        request=a_request("b"),
        reason=Reason(
            code=ReasonCode.GANG_FULL,
            arguments={"gang": "vision/bert", "members": 1, "leaf_cells": 8},
            text="gang vision/bert already has its only member with 8 leaf cells; "
            "starts once a member has ended; check `cellgate.io/gang-size`",
            change="starts once a member has ended; check `cellgate.io/gang-size`",
        ),
    )


def test_members_of_different_sizes_get_places_of_their_own(engine: Engine) -> None:
    small = replace(a_request("s", leaves=2), gang_leaf_counts=(2, 8, 8))
    large = replace(a_request("l", leaves=8), gang_leaf_counts=(2, 8, 8))

    assert place(engine, small) == at("n2", 0, 1)
    assert place(engine, large) == at("n0", *ALL_OF_A_NODE)


def test_members_that_disagree_about_their_gang_are_refused(engine: Engine) -> None:
    place(engine, a_request("small", size=3, leaves=1))
    decision = engine.plan(a_request("large", size=3, leaves=8), candidate_nodes=NODES)

    assert isinstance(decision, Reject)
    assert decision.reason.code is ReasonCode.GANG_MISMATCH


def test_a_replacement_finds_the_place_of_the_member_that_ended(engine: Engine) -> None:
    for uid in ("a", "b"):
        place(engine, a_request(uid, size=2))
    engine.forget_member(PodUid("a"))

    assert place(engine, a_request("c", size=2)) == at("n0", *ALL_OF_A_NODE)


def test_a_lease_that_is_not_used_expires(engine: Engine) -> None:
    for uid in ("a", "b"):
        place(engine, a_request(uid, size=3))
    observe_bound(engine, a_request("a", size=3), node=NODES[0], leaf_cells=ALL_OF_A_NODE)

    assert engine.expire(now=59.9) == []
    assert engine.expire(now=60) == [GangKey("vision", "bert")]
    assert engine.placement(PodUid("a")) == at("n0", *ALL_OF_A_NODE)
    assert engine.placement(PodUid("b")) is None
    assert [len(holders) for _, holders in list_nodes(engine)] == [8, 0, 0]


def test_a_gang_without_members_is_forgotten_with_what_was_held_for_it(engine: Engine) -> None:
    place(engine, a_request("a", size=3))
    engine.forget_member(PodUid("a"))

    assert engine.gangs() == []
    assert [len(holders) for _, holders in list_nodes(engine)] == [0, 0, 0]


def test_a_pod_that_we_did_not_place_is_counted(engine: Engine) -> None:
    observe_bound(engine, a_request("x", gang="x", leaves=3), node=NODES[0], leaf_cells=())

    assert engine.placement(PodUid("x")) == at("n0", 0, 1, 2)


def test_two_pods_that_claim_the_same_leaf_cell_are_both_counted(engine: Engine) -> None:
    for uid in ("x", "y"):
        observe_bound(engine, a_request(uid, gang=uid, leaves=2), node=NODES[0], leaf_cells=(0, 1))

    assert engine.placement(PodUid("y")) == at("n0", 2, 3)


def test_a_pod_that_claims_leaf_cells_its_node_does_not_have_is_counted_elsewhere(
    engine: Engine,
) -> None:
    observe_bound(engine, a_request("x", gang="x", leaves=1), node=NODES[0], leaf_cells=(9,))

    assert engine.placement(PodUid("x")) == at("n0", 0)


def test_a_bound_pod_is_known_before_its_node_is() -> None:
    engine = Engine(lease_seconds=60)
    observe_bound(engine, a_request("x", leaves=8), node=NODES[0], leaf_cells=ALL_OF_A_NODE)
    engine.observe_node(NodeCell(name=NODES[0], leaf_type=None, leaf_count=8))

    decision = engine.plan(a_request("a", gang="a", leaves=1), candidate_nodes=NODES)
    assert isinstance(decision, Wait)


def test_a_node_that_comes_back_still_has_its_pods(engine: Engine) -> None:
    place(engine, a_request("a"))
    engine.forget_node(NODES[0])
    engine.observe_node(NodeCell(name=NODES[0], leaf_type=None, leaf_count=8))

    assert place(engine, a_request("b", gang="b")).node == "n1"


def test_a_bad_node_is_not_used(engine: Engine) -> None:
    engine.observe_node(NodeCell(name=NODES[0], leaf_type=None, leaf_count=8, is_healthy=False))

    assert place(engine, a_request("a")).node == "n1"


def test_a_leaf_type_called_any_is_not_any_leaf_type(engine: Engine) -> None:
    place(engine, a_request("first", size=2))
    decision = engine.plan(a_request("second", size=2, leaf_type="any"), candidate_nodes=NODES)

    assert isinstance(decision, Reject)
    assert decision.reason.code is ReasonCode.GANG_MISMATCH
