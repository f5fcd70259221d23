"""Gangs that have not run for long enough are no victims of their own VC."""

from extender.cells.model import Preempt, ReasonCode, Wait
from policy.submission import GangKey
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_calls import check
from tests.support.cells.engine_world import EngineWorld


def two_nodes() -> EngineWorld:
    return EngineWorld(a_cluster("2 nodes x 2").promising("a", node=2))


def key_of(name: str) -> GangKey:
    return next(iter(a_gang(name).members())).gang


def begin(world: EngineWorld, *names: str, seconds: int = 1800) -> None:
    for name in names:
        assert world.engine.observe_minimum_run(key_of(name), seconds=seconds)


def victims(world: EngineWorld) -> list[str]:
    decision = world.ask(a_gang("urgent").of(2).at(5))
    assert isinstance(decision, Preempt), decision
    return [victim.name for victim in decision.victims]


def test_a_gang_that_has_run_for_long_enough_goes_instead() -> None:
    world = two_nodes()
    world.run(a_gang("young").of(2).at(1).created(200), ("n0", (0, 1)))
    world.run(a_gang("old").of(2).at(1).created(100), ("n1", (0, 1)))
    assert victims(world) == ["young"]
    begin(world, "young")
    assert victims(world) == ["old"]
    begin(world, "young", seconds=0)
    assert victims(world) == ["young"]


def test_a_gang_waits_for_the_minimum_run_and_says_so() -> None:
    world = two_nodes()
    world.run(a_gang("one").of(2).at(1), ("n0", (0, 1)))
    world.run(a_gang("two").of(2).at(1), ("n1", (0, 1)))
    begin(world, "one", "two")

    decision = world.ask(a_gang("urgent").of(2).at(5))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.MINIMUM_RUN
    assert decision.reason.text == (
        "gang ns/urgent needs 2 leaf cells; it may preempt ns/two of its own VC a once "
        "that gang has run for 30 min (`preemption.minimumRun` of the Queues document); starts "
        "then, or once other gangs of the VC have ended"
    )
    assert world.ask(a_gang("urgent").of(2).at(5)) == decision
    check(world.engine)
    begin(world, "two", seconds=0)
    assert victims(world) == ["two"]


def test_opportunistic_gangs_end_at_once_for_what_a_vc_was_promised() -> None:
    world = two_nodes()
    world.run(a_gang("one").of(2).at(-1), ("n0", (0, 1)))
    world.run(a_gang("two").of(2).at(-1), ("n1", (0, 1)))
    begin(world, "one", "two")
    assert victims(world) == ["two"]


def test_a_gang_that_ends_already_is_waited_for() -> None:
    world = two_nodes()
    world.run(a_gang("one").of(2).at(1), ("n0", (0, 1)))
    world.run(a_gang("two").of(2).at(1), ("n1", (0, 1)))
    begin(world, "one", "two")
    for member in a_gang("one").of(2).members():
        world.engine.observe_ending(member.member)
    assert victims(world) == ["one"]


def test_another_reason_comes_first_if_minimum_runs_are_not_all_that_is_missing() -> None:
    world = two_nodes()
    world.run(a_gang("one").of(2).at(1), ("n0", (0, 1)))
    world.run(a_gang("equal").of(2).at(5), ("n1", (0, 1)))
    begin(world, "one")

    decision = world.ask(a_gang("urgent").of(2, 2).at(5))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.VC_FULL


def test_a_minimum_run_is_remembered_when_the_cluster_changes() -> None:
    world = two_nodes()
    world.run(a_gang("young").of(2).at(1).created(200), ("n0", (0, 1)))
    world.run(a_gang("old").of(2).at(1).created(100), ("n1", (0, 1)))
    begin(world, "young")
    world.engine.rerank({})
    assert victims(world) == ["old"]
    topology = world.engine._components.topology
    assert topology is not None
    world.engine.change_topology(topology)
    assert victims(world) == ["old"]
    assert not world.engine.observe_minimum_run(key_of("unknown"), seconds=60)
