"""A swap exchanges two places of a pool: no other gang has another place, whatever happens next."""

from hypothesis import given
from hypothesis import strategies as st

from extender.cells.views.listings import run_to_end
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest
from policy.submission import GangKey, PodUid
from tests.support.cells.builders import a_gang
from tests.support.queue.driver import deliver, step, submit, world_of_two_vcs
from tests.support.queue.orders import CLASSES, queues
from tests.support.queue.planner_world import PlannerWorld

_DOCUMENT = """levels:
- {name: urgent, strategy: fifo, who: {users: [bob]}}
- {name: rest, strategy: formula, worth: {class: 2h, userLevel: 1h}, promoteAfter: 2h}
userLevels: {gold: [alice]}"""
_NAMES = "abcdef"
_GANG = st.tuples(
    st.sampled_from(["alice", "bob", "carol"]),
    st.sampled_from(["prod", "test", "oppo"]),
    st.integers(0, 1),
)


def _world(gangs: list[tuple[str, str, int]]) -> PlannerWorld:
    """Let gangs wait behind one that holds all cells; some ask in the same second."""
    world = world_of_two_vcs()
    world.planner.ranking.order.configure(queues(_DOCUMENT), CLASSES)
    submit(world, a_gang("first").of(4, 4))
    step(world)
    for name, (user, class_name, later) in zip(_NAMES, gangs, strict=False):
        world.now += later
        submit(world, a_gang(name).of(4, 4))
        for pod in world.pods.values():
            if pod.seen_as.request.gang.name == name:
                world.change(pod, user=user, class_name=class_name)
        deliver(world)
    step(world)
    return world


def _order(world: PlannerWorld) -> list[GangKey]:
    return [facts.gang for facts, _ in world.planner.ranking.in_order()]


def _swap(world: PlannerWorld, one: GangKey, other: GangKey) -> None:
    request = SwapRequest(other=other, role=HoldRole.OWNER, user="alice", at=world.now)
    world.planner.ranking.swap(one, request)


def _end(world: PlannerWorld, gang: GangKey) -> None:
    for uid in [uid for uid, pod in world.pods.items() if pod.seen_as.request.gang == gang]:
        world.delete(PodUid(uid))
    deliver(world)
    step(world)


def _exchanged(order: list[GangKey], one: GangKey, other: GangKey) -> list[GangKey]:
    return [{one: other, other: one}.get(gang, gang) for gang in order]


@given(st.lists(_GANG, min_size=3, max_size=6), st.data())
def test_a_swap_exchanges_two_places_and_no_others(
    gangs: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    world = _world(gangs)
    before = _order(world)
    one, other = data.draw(st.permutations(before))[:2]
    _swap(world, one, other)
    assert _order(world) == _exchanged(before, one, other)
    run_to_end(world.planner.ranking.reorder())
    assert _order(world) == _exchanged(before, one, other), "nothing depends on which came first"
    world.planner.ranking.swap(one, None)
    assert _order(world) == before


@given(st.lists(_GANG, min_size=3, max_size=6), st.data())
def test_the_end_of_one_that_waits_gives_the_other_its_own_place(
    gangs: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    world = _world(gangs)
    before = _order(world)
    one, other = data.draw(st.permutations(before))[:2]
    _swap(world, one, other)
    gone = data.draw(st.sampled_from([one, other]))
    _end(world, gone)
    assert _order(world) == [gang for gang in before if gang != gone]


@given(st.lists(_GANG, min_size=3, max_size=6), st.data())
def test_the_start_of_one_leaves_the_other_where_it_is(
    gangs: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    world = _world(gangs)
    before = _order(world)
    other = data.draw(st.sampled_from(before[1:]))
    _swap(world, before[0], other)
    expected = _exchanged(before, before[0], other)
    _end(world, GangKey("ns", "first"))
    assert _order(world) == expected[1:], "the first place is used once"
    _end(world, expected[0])
    assert _order(world)[: len(expected) - 2] == expected[2:], "also when the other one has ended"


@given(st.lists(_GANG, min_size=4, max_size=6), st.data())
def test_no_series_of_swaps_puts_another_gang_further_behind(
    gangs: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    world = _world(gangs)
    left_alone = data.draw(st.sampled_from(_order(world)))
    last = _order(world).index(left_alone)
    runs = GangKey("ns", "first")
    for _ in range(data.draw(st.integers(1, 8))):
        waiting = [gang for gang in _order(world) if gang != left_alone]
        if left_alone not in _order(world) or len(waiting) < 2:
            return
        match data.draw(st.sampled_from(["swap", "swap", "undo", "start", "cancel"])):
            case "swap":
                world.now += 1
                _swap(world, *data.draw(st.permutations(waiting))[:2])
            case "undo":
                world.planner.ranking.swap(data.draw(st.sampled_from(waiting)), None)
            case "cancel":
                _end(world, data.draw(st.sampled_from(waiting)))
            case "start":
                first = _order(world)[0]
                _end(world, runs)
                runs = first
        if left_alone in _order(world):
            place = _order(world).index(left_alone)
            assert place <= last
            last = place
