"""One gang gets a higher priority while it runs, at the cost of that gang."""

from extender.cells.model import Place, Preempt, Wait
from extender.cells.observe.reconfiguration import Effect
from policy.submission import GangKey
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld

_KEY = GangKey("ns", "low")


def _world() -> EngineWorld:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=1).promising("b", node=1))
    world.place(a_gang("low").of(2).in_vc("a").at(-1))
    return world


def test_an_opportunistic_gang_is_guaranteed_if_its_vc_has_cells_for_it() -> None:
    world = _world()
    (effect,) = world.engine.raise_gang(_KEY, 3)
    check(world.engine)
    assert (effect.gang, effect.effect) == (_KEY, Effect.PROMOTED)
    assert isinstance(world.ask(a_gang("more").of(2).in_vc("a")), Wait)
    assert isinstance(world.ask(a_gang("other").of(2).in_vc("b")), Place)


def test_it_stays_opportunistic_while_its_vc_has_none() -> None:
    world = _world()
    world.place(a_gang("own").of(2).in_vc("a").at(3))
    (effect,) = world.engine.raise_gang(_KEY, 3)
    check(world.engine)
    assert effect.effect is Effect.KEPT
    assert isinstance(world.ask(a_gang("owner").of(2).in_vc("b")), Preempt)


def test_a_late_member_agrees_with_the_raised_gang() -> None:
    world = EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))
    low = a_gang("low").of(2, 2).in_vc("a").at(-1)
    world.apply(world.ask(low))
    world.engine.raise_gang(_KEY, 3)
    check(world.engine)
    late = a_gang("low").of(2, 2).in_vc("a").at(3)
    assert isinstance(world.ask(late, member=1), Place)


def test_a_guaranteed_gang_gets_a_higher_guaranteed_priority() -> None:
    world = EngineWorld(a_cluster("1 nodes x 2").promising("a", node=1))
    world.place(a_gang("low").of(2).in_vc("a").at(1))
    assert isinstance(world.ask(a_gang("next").of(2).in_vc("a").at(3)), Preempt)
    world.engine.raise_gang(_KEY, 5)
    check(world.engine)
    assert isinstance(world.ask(a_gang("next").of(2).in_vc("a").at(3)), Wait)


def test_a_gang_is_never_lowered_and_an_unknown_one_is_ignored() -> None:
    world = _world()
    world.engine.raise_gang(_KEY, 3)
    assert world.engine.raise_gang(_KEY, 3) == world.engine.raise_gang(_KEY, 0) == []
    assert world.engine.raise_gang(GangKey("ns", "unknown"), 9) == []
