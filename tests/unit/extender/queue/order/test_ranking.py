"""The planner's gangs follow the order: at once, and without new decisions."""

from itertools import pairwise

import pytest

from extender.cells.views.listings import run_to_end
from policy.queues.queues import DEFAULT_QUEUES, Queues
from policy.submission import PodUid
from tests.support.cells.builders import a_gang
from tests.support.queue.driver import deliver, step, submit, world_of_two_vcs
from tests.support.queue.orders import CLASSES, DAY, one_level, queues
from tests.support.queue.planner_world import PlannerWorld


def _world(document: Queues, *gangs: tuple[str, str, str]) -> PlannerWorld:
    """Let gangs wait behind one that holds all cells: name, user and class of each."""
    world = world_of_two_vcs()
    world.planner.ranking.order.configure(document, CLASSES)
    submit(world, a_gang("first").of(4, 4))
    step(world)
    for name, user, class_name in gangs:
        world.now += 1
        submit(world, a_gang(name).of(4, 4))
        for pod in world.pods.values():
            if pod.seen_as.request.gang.name == name:
                world.change(pod, user=user, class_name=class_name)
        deliver(world)
    step(world)
    return world


def _order(world: PlannerWorld) -> list[str]:
    return [facts.gang.name for facts, _ in world.planner.ranking.in_order()]


def test_a_changed_document_orders_waiting_gangs_anew() -> None:
    world = _world(one_level("fifo"), ("a", "alice", "oppo"), ("b", "bob", "prod"))
    assert _order(world) == ["a", "b"]
    world.planner.ranking.order.configure(DEFAULT_QUEUES, CLASSES)
    run_to_end(world.planner.ranking.reorder())
    assert _order(world) == ["b", "a"]
    world.delete(PodUid("first-0"))
    world.delete(PodUid("first-1"))
    deliver(world)
    assert {one.uid for one in step(world)} >= {PodUid("b-0"), PodUid("b-1")}


def test_gangs_of_the_same_second_are_planned_in_the_order_that_is_shown() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").of(4, 4))
    step(world)
    for name in ("zoe", "ada", "max"):
        submit(world, a_gang(name).of(4, 4))
    step(world)
    shown = _order(world)
    assert len(shown) == 3
    for ended, planned in pairwise(["first", *shown]):
        for uid in (f"{ended}-0", f"{ended}-1"):
            world.delete(PodUid(uid))
        deliver(world)
        asked = {one.uid for one in step(world) if one.uid in world.pods}
        assert asked == {f"{planned}-0", f"{planned}-1"}


def test_a_gang_is_promoted_when_its_time_has_come() -> None:
    levels = """
levels:
- {name: urgent, who: {users: [bob]}, strategy: fifo}
- {name: rest, strategy: fifo, promoteAfter: 1d}
"""
    world = _world(queues(levels), ("a", "alice", "test"), ("b", "bob", "test"))
    assert _order(world) == ["b", "a"]
    world.planner.ranking.note_time(DAY)
    assert _order(world) == ["b", "a"]
    world.planner.ranking.note_time(DAY + 10)
    assert _order(world) == ["a", "b"]


def test_gangs_that_a_wrong_clock_promoted_return_to_their_level() -> None:
    levels = """
levels:
- {name: urgent, who: {users: [bob]}, strategy: fifo}
- {name: rest, strategy: fifo, promoteAfter: 1d}
"""
    world = _world(queues(levels), ("a", "alice", "test"), ("b", "bob", "test"))
    ranking, now = world.planner.ranking, world.planner.ranking.now
    ranking.note_time(now + 400 * DAY)
    assert _order(world) == ["a", "b"]
    ranking.note_time(now)
    assert _order(world) == ["b", "a"]
    ranking.note_time(now + DAY + 10)
    assert _order(world) == ["a", "b"], "when its time has come indeed"


def test_thousands_of_gangs_are_not_promoted_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.queue.order.ranking._MOST_PROMOTED", 2)
    levels = """
levels:
- {name: urgent, who: {users: [bob]}, strategy: fifo}
- {name: rest, strategy: fifo, promoteAfter: 1d}
"""
    gangs = [(name, "alice", "test") for name in "abc"]
    world = _world(queues(levels), *gangs, ("z", "bob", "test"))
    ranking = world.planner.ranking
    ranking.note_time(ranking.now + DAY + 10)
    assert _order(world)[-1] == "c", "it is promoted later"
    for _ in range(3):
        ranking.note_time(ranking.now)
    assert _order(world) == ["a", "b", "c", "z"]


def test_a_start_counts_at_once_against_the_user() -> None:
    document = one_level("fair-share")
    world = _world(document, ("a", "alice", "test"), ("b", "bob", "test"), ("c", "alice", "test"))
    world.planner.ranking.order.observe_vcs({}, leaf_cells=8)
    assert _order(world) == ["a", "b", "c"]
    for uid in ("first-0", "first-1"):
        world.delete(PodUid(uid))
    deliver(world)
    assert {one.uid for one in step(world)} >= {PodUid("a-0"), PodUid("a-1")}
    assert _order(world) == ["b", "c"]
    (_, bob), (_, alice) = world.planner.ranking.in_order()
    assert (bob.parts[0].value, alice.parts[0].value < 1.0) == (1.0, True)


def test_a_gang_that_did_not_use_its_lease_is_behind_once() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("old").of(4, 4))
    world.now += 1
    submit(world, a_gang("young").of(4, 4))
    assert {one.uid for one in step(world)} == {PodUid("old-0"), PodUid("old-1")}
    world.now += 30.0
    world.step()
    assert {PodUid("young-0"), PodUid("young-1")} <= {one.uid for one in world.actions}
    assert _order(world) == ["old"]
    _, old = world.planner.ranking.in_order()[0]
    assert old.asked == 0.0, "its age is kept"


def test_moving_gangs_plans_none_of_them_again() -> None:
    world = _world(one_level("fifo"), ("a", "alice", "oppo"), ("b", "bob", "prod"))
    world.planner.ranking.order.configure(DEFAULT_QUEUES, CLASSES)
    run_to_end(world.planner.ranking.reorder())
    result = world.planner.step(now=world.now)
    assert (result.actions, result.notices, result.has_more) == ([], {}, False)


def test_gangs_that_leave_are_forgotten() -> None:
    world = _world(one_level("fair-share"), ("a", "alice", "test"))
    for uid in ("a-0", "a-1"):
        world.delete(PodUid(uid))
    deliver(world)
    step(world)
    assert world.planner.ranking.in_order() == []


def test_promotions_of_gangs_that_are_gone_are_forgotten() -> None:
    levels = """
levels:
- {name: urgent, who: {users: [bob]}, strategy: fifo}
- {name: rest, strategy: fifo, promoteAfter: 28d}
"""
    world = _world(queues(levels), ("stays", "alice", "test"))
    for number in range(500):
        submit(world, a_gang(f"g{number}").of(4, 4))
        step(world)
        world.delete(PodUid(f"g{number}-0"))
        world.delete(PodUid(f"g{number}-1"))
        deliver(world)
        world.now += 1
    assert len(world.planner.ranking._promotions) <= 201
    assert "stays" in {gang.name for _, gang in world.planner.ranking._promotions}
