"""Incremental gangs, replacements of members, and members that do not match their gang."""

import pytest

from extender.cells.model import Place, ReasonCode, Reject, Wait
from policy.errors import ConflictError
from policy.submission import NodeName
from tests.support.cells.builders import a_cluster, a_gang, an_engine
from tests.support.cells.engine_calls import check, list_cells
from tests.support.cells.engine_world import EngineWorld


def test_an_incremental_gang_starts_with_what_fits_and_grows() -> None:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=3))
    other, grows = a_gang("other").of(2), a_gang("grows").of(2, 2, 2).at_least(1)
    world.place(other)

    for index in (0, 1):
        decision = world.ask(grows, member=index)
        assert isinstance(decision, Place)
        world.apply(decision)
    assert isinstance(world.ask(grows, member=2), Wait)
    world.end(other)
    assert isinstance(world.ask(grows, member=2), Place)


def test_an_incremental_gang_waits_below_its_least_number() -> None:
    world = EngineWorld(a_cluster("3 nodes x 2").promising("a", node=3))
    world.place(a_gang("other").of(2, 2))

    assert isinstance(world.ask(a_gang("grows").of(2, 2, 2).at_least(2)), Wait)


def test_a_replacement_gets_the_same_cells_while_the_gang_keeps_them() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    gang = a_gang("pair").of(1, 1).whole()
    world.place(gang)
    before = world.engine.placement(gang.member(1).member)

    world.engine.forget_member(gang.member(1).member)
    assert isinstance(world.ask(a_gang("thief").of(1)), Wait)
    decision = world.ask(gang, member=1)

    assert isinstance(decision, Place)
    assert decision.placement == before


def test_cells_of_an_ended_member_are_free_at_once_otherwise() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    gang = a_gang("pair").of(1, 1)
    world.place(gang)

    world.engine.forget_member(gang.member(1).member)

    world.place(a_gang("next").of(1))


def test_a_stranger_cannot_join_a_gang() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.apply(world.ask(a_gang("team").of(1, 1)))

    decision = world.ask(a_gang("team").of(1, 1).in_vc("b"), member=1)

    assert isinstance(decision, Reject)
    assert decision.reason.code is ReasonCode.GANG_MISMATCH


def test_a_decision_that_is_out_of_date_changes_nothing() -> None:
    engine = an_engine(a_cluster("1 nodes x 2").promising("a", node=1))
    nodes = [NodeName("n0")]
    old = engine.plan(a_gang("late").of(2).member(), candidate_nodes=nodes)
    engine.apply(engine.plan(a_gang("first").of(2).member(), candidate_nodes=nodes), now=0)
    before = engine.gangs(), list_cells(engine)

    with pytest.raises(ConflictError, match="out of date"):
        engine.apply(old, now=0)

    assert (engine.gangs(), list_cells(engine)) == before
    check(engine)
