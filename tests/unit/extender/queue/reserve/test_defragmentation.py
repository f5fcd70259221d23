"""Moves of opportunistic gangs: found for a reserved one, proposed, and by policy performed."""

from dataclasses import replace

import pytest

from extender.cells.model import MemberRequest
from extender.queue.reserve.defragmentation import ProposedMoves
from policy.classes import NO_CLASSES
from policy.queues.queues import (
    DEFAULT_QUEUES,
    DefragmentationMode,
    DefragmentationRules,
    PreemptionRules,
)
from policy.submission import GangKey, PodUid
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.queue.timed_world import TimedWorld

HOUR = 3600.0
PERFORM = DefragmentationRules(mode=DefragmentationMode.PERFORM, maximum_cost=24 * HOUR)
PROPOSE = replace(PERFORM, mode=DefragmentationMode.PROPOSE)


def key(name: str) -> GangKey:
    return GangKey("ns", name)


def half(name: str) -> GangBuilder:
    return a_gang(name).of(2).at(-1)


def a_world(
    rules: DefragmentationRules = PERFORM,
    *,
    minimum_run: float = 0.0,
    cost: int | None = None,
) -> TimedWorld:
    """Two nodes, each half in use by an opportunistic gang, and a gang that needs a whole one."""
    queues = replace(
        DEFAULT_QUEUES,
        defragmentation=rules,
        preemption=PreemptionRules(minimum_run=minimum_run),
    )
    cluster = a_cluster("2 nodes x 4").promising("a", node=1)
    world = TimedWorld(cluster.build(), queues=queues)
    for name in ("stay0", "go0", "stay1", "go1"):
        runs = 10 * HOUR if name.startswith("stay") else 60.0
        gang = half(name) if cost is None else half(name).losing(cost)
        world.submit(gang, runs=runs, predicted=runs)
    world.may_move = {key("stay0"), key("stay1")}
    large = a_gang("large").of(4).at(-1)
    world.submit(large, runs=HOUR, may_preempt=False)  # as in the class that is in use
    world.advance(60)  # two halves are idle now, on two nodes
    return world


def found(world: TimedWorld) -> ProposedMoves | None:
    return world.planner.reservations.moves.find(key("large"))


def test_moves_are_proposed_beside_the_reservation_and_not_performed() -> None:
    world = a_world(PROPOSE)
    world.advance(601)
    proposed = found(world)
    assert proposed is not None
    assert len(proposed.moves.gangs) == 1
    assert proposed.moves.cost == pytest.approx(2 * 661, abs=5), "all that it has run"
    assert not proposed.is_performed
    assert not world.evicted
    world.check()


def test_a_move_is_performed_and_both_gangs_run_on() -> None:
    world = a_world()
    world.advance(601)
    (victim,) = {one.victim for one in world.evicted}
    assert "is moved for gang ns/large, for which leaf cells are" in world.evicted[0].reason.text
    assert [one.victims for one in world.moves] == [(victim,)]
    (reserved,) = world.planner.reservations.in_force()
    moved_from = reserved.nodes
    world.end(victim)
    again = half(victim.name)
    world.started.pop(victim)
    world.submit(again, runs=HOUR, predicted=HOUR)
    world.work()
    assert key("large") in world.started
    assert victim in world.started, "it runs elsewhere"
    places = {name: world.engine.gang(key(name)) for name in ("large", victim.name)}
    nodes = {n: {p.node for p in v.members.values()} for n, v in places.items() if v is not None}
    assert nodes["large"] == set(moved_from)
    assert nodes[victim.name].isdisjoint(moved_from)
    assert found(world) is None
    world.check()


def test_a_moved_gang_that_does_not_end_is_asked_again_later() -> None:
    world = a_world()
    world.advance(601)
    assert len(world.moves) == 1
    world.advance(200)
    assert len(world.moves) == 1
    world.advance(200)
    assert len(world.moves) == 2


def a_world_of_two_moves() -> tuple[TimedWorld, GangKey, GangKey, GangKey]:
    """Two gangs are ended for one that needs two whole nodes; two halves of nodes are idle."""
    world = TimedWorld(
        a_cluster("4 nodes x 4").promising("a", node=2).build(),
        queues=replace(DEFAULT_QUEUES, defragmentation=PERFORM),
    )
    for place in range(4):
        world.submit(half(f"stay{place}"), runs=10 * HOUR, predicted=10 * HOUR)
        world.submit(half(f"go{place}"), runs=60, predicted=60)
    world.may_move = {key(f"stay{place}") for place in range(4)}
    large = world.submit(a_gang("large").of(4, 4).at(-1), runs=HOUR, may_preempt=False)
    world.advance(60)
    world.advance(601)
    quick, slow = sorted({one.victim for one in world.evicted})
    return world, large, quick, slow


def test_a_gang_that_moved_does_not_come_back_though_it_would_end_in_time() -> None:
    world, large, quick, slow = a_world_of_two_moves()
    for place in range(2):  # somebody else takes the places that it was to have
        world.submit(half(f"new{place}"), runs=10 * HOUR)
    world.end(quick)
    world.started.pop(quick)
    world.submit(_Again(half(quick.name).request), runs=HOUR, limit=HOUR)
    world.end(slow)
    world.work()
    assert large in world.started


def test_a_gang_that_moved_is_not_ended_again_while_another_one_takes_its_time() -> None:
    world, large, quick, slow = a_world_of_two_moves()
    world.end(quick)
    world.started.pop(quick)
    world.submit(_Again(half(quick.name).request), runs=HOUR, predicted=HOUR)
    assert quick in world.started, "it runs elsewhere"
    world.evicted.clear()
    world.planner.wake()  # a pod anywhere has ended
    world.work()
    assert {one.victim for one in world.evicted} <= {slow}
    world.end(slow)
    world.work()
    assert large in world.started


class _Again(GangBuilder):
    """A gang whose controller has created its pods again."""

    def members(self) -> list[MemberRequest]:
        return [replace(one, member=PodUid(f"{one.member}-again")) for one in super().members()]


@pytest.mark.parametrize(
    "how",
    [
        {"rules": DefragmentationRules(mode=DefragmentationMode.OFF)},
        {"rules": replace(PERFORM, maximum_cost=60.0)},
        {"minimum_run": HOUR},
    ],
    ids=["off", "too dear", "not for long enough"],
)
def test_nothing_moves(how: dict[str, object]) -> None:
    world = a_world(**how)  # type: ignore[arg-type]
    world.advance(601)
    assert found(world) is None
    assert not world.evicted


def test_a_gang_with_good_checkpoints_costs_little() -> None:
    world = a_world(replace(PROPOSE, maximum_cost=60.0), cost=10)
    world.advance(601)
    proposed = found(world)
    assert proposed is not None
    assert proposed.moves.cost == 20


def test_a_gang_that_starts_soon_anyway_moves_no_other() -> None:
    world = a_world()
    world.run_times.of[key("stay0")] = replace(world.run_times.of[key("stay0")], median=700.0)
    world.advance(601)
    assert found(world) is None


def test_proposals_end_with_the_reservation() -> None:
    world = a_world(PROPOSE)
    world.advance(601)
    assert found(world) is not None
    world.end(key("stay0"))
    world.work()
    assert key("large") in world.started
    assert found(world) is None


def test_another_document_counts_at_once() -> None:
    world = a_world(PROPOSE)
    world.advance(601)
    assert not world.evicted
    queues = replace(world.planner.ranking.order.queues, defragmentation=PERFORM)
    world.planner.ranking.order.configure(queues, NO_CLASSES)
    world.advance(1)
    assert world.evicted
