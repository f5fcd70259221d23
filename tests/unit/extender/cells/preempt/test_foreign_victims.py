"""Foreign pods end for a promise only where the policy says so, and only if that helps."""

import pytest

from extender.cells.model import Place, Preempt, ReasonCode, Wait
from policy.submission import VcName
from tests.support.cells.builders import ClusterBuilder, GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_calls import check, observe_foreign
from tests.support.cells.engine_world import EngineWorld


def _cluster() -> ClusterBuilder:
    return a_cluster("3 nodes x 2").promising("a", node=2).promising("b", node=1)


def _world(*foreign: GangBuilder, reclaims: bool = True, is_protected: bool = False) -> EngineWorld:
    """One foreign pod on each node."""
    world = EngineWorld(_cluster(), reclaims_foreign=reclaims)
    for index, gang in enumerate(foreign):
        observe_foreign(world.engine, gang.member(), node=f"n{index}", is_protected=is_protected)
        check(world.engine)
    return world


def _foreign(index: int, *, priority: int = -1, vc: str = "b", size: int = 2) -> GangBuilder:
    return a_gang(f"f{index}").of(size).in_vc(vc).at(priority)


def _victims(world: EngineWorld, gang: GangBuilder) -> list[str]:
    decision = world.ask(gang)
    assert isinstance(decision, Preempt), decision
    return [victim.name for victim in decision.victims]


@pytest.mark.parametrize("priority", [-1, 5], ids=["opportunistic", "guaranteed"])
@pytest.mark.parametrize("vc", ["a", "b"])
def test_a_promise_ends_as_few_foreign_pods_as_it_needs(priority: int, vc: str) -> None:
    world = _world(*(_foreign(index, priority=priority, vc=vc) for index in range(3)))

    assert len(_victims(world, a_gang("one").of(2))) == 1
    assert len(_victims(world, a_gang("two").of(2, 2))) == 2


def test_by_default_they_are_kept_and_named() -> None:
    world = _world(*map(_foreign, range(3)), reclaims=False)

    decision = world.ask(a_gang("one").of(2))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.FOREIGN_USE
    assert decision.reason.arguments["count"] == 3
    assert decision.reason.arguments["pods"] == (
        ("ns/f0-0", "alice", "n0", 2),
        ("ns/f1-0", "alice", "n1", 2),
        ("ns/f2-0", "alice", "n2", 2),
    )


def test_protected_pods_are_never_ended() -> None:
    world = _world(*map(_foreign, range(3)), is_protected=True)

    decision = world.ask(a_gang("one").of(2))

    assert isinstance(decision, Wait)
    assert decision.reason.code is ReasonCode.FOREIGN_USE


def test_no_foreign_pod_ends_for_an_opportunistic_gang_or_beyond_the_promise() -> None:
    world = _world(*map(_foreign, range(3)))

    assert isinstance(world.ask(a_gang("low").of(2).at(-1)), Wait)
    assert isinstance(world.ask(a_gang("much").of(2, 2, 2)), Wait)


def test_the_gang_starts_once_they_have_ended() -> None:
    foreign = [_foreign(index) for index in range(3)]
    world = _world(*foreign)
    gang = a_gang("two").of(2, 2)
    world.apply(world.ask(gang))
    for one in foreign:
        world.tell_to_end(one)
        world.end(one)

    assert isinstance(world.ask(gang), Place)


def test_a_changed_policy_applies_to_pods_that_run() -> None:
    world = _world(*map(_foreign, range(3)), reclaims=False)
    topology = _cluster().build()

    world.engine.change_topology(topology, reclaims_foreign=True)
    check(world.engine)
    assert len(_victims(world, a_gang("one").of(2))) == 1

    world.engine.change_topology(topology, reclaims_foreign=False)
    check(world.engine)
    assert isinstance(world.ask(a_gang("one").of(2)), Wait)


def test_a_preemption_is_withdrawn_when_the_policy_keeps_the_victims_again() -> None:
    world = _world(*map(_foreign, range(3)))
    gang = a_gang("one").of(2)
    world.apply(world.ask(gang))

    world.engine.change_topology(_cluster().build(), reclaims_foreign=False)

    check(world.engine)
    assert isinstance(world.ask(gang), Wait)


def test_a_foreign_gang_of_another_vc_frees_the_promise_of_this_one() -> None:
    world = EngineWorld(_cluster(), reclaims_foreign=True)
    gang = a_gang("f").of(2, 2).in_vc("b").at(7)
    for request, node in zip(gang.members(), ("n0", "n1"), strict=True):
        observe_foreign(world.engine, request, node=node)
        check(world.engine)

    assert gang.request.vc == VcName("b")
    assert _victims(world, a_gang("two").of(2, 2)) == ["f"]
