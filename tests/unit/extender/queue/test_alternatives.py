"""Gangs with alternatives: the first form that fits is used, and no gang waits for another form."""

from policy.queues.alternatives import Alternative
from policy.submission import LeafType, PodUid, VcName
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.queue.driver import (
    deliver,
    is_whole,
    notices,
    release_all,
    run,
    step,
    submit,
    world_of_two_vcs,
)
from tests.support.queue.planner_world import LEASE_SECONDS, PlannerWorld

_IN_B = Alternative(vc=VcName("b"))


def _world_of_two_types() -> PlannerWorld:
    cluster = (
        a_cluster("2 nodes x 4")
        .chain("2 nodes x 4", name="old", leaf_type="V100")
        .promising("a", node=2)
        .promising("a", node=2, chain="old")
    )
    return PlannerWorld(cluster.build())


def _stated(world: PlannerWorld, uid: str) -> str:
    return world.pods[PodUid(uid)].seen_as.alternative


def test_gang_that_fits_as_asked_uses_no_alternative() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(_IN_B,))
    run(world)

    assert is_whole(world, "bert")
    assert _stated(world, "bert-0") == ""
    assert [gang.vc for gang in world.engine.gangs()] == ["a"]


def test_gang_uses_the_first_alternative_that_fits_and_says_why() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4))
    run(world)
    unknown = Alternative(leaf_type=LeafType("none"))
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(unknown, _IN_B))
    run(world)

    assert is_whole(world, "bert")
    stated = _stated(world, "bert-0")
    assert stated == (
        "2 of 2 (VC b): as asked: gang ns/bert needs 2 x 4 leaf cells, each member in one cell of "
        "VC a; 4 of the 8 leaf cells promised to VC a are unused; alternative 1 of 2 (leaf type "
        "none): gang ns/bert asks for leaf cells of type none, which the cluster does not have"
    )
    assert _stated(world, "bert-1") == stated
    assert [gang.vc for gang in world.engine.gangs()] == ["b", "a"]


def test_gang_uses_another_leaf_type() -> None:
    world = _world_of_two_types()
    submit(world, a_gang("first").in_vc("a").typed("gpu").of(4, 4))
    run(world)
    other = Alternative(leaf_type=LeafType("V100"))
    submit(world, a_gang("bert").in_vc("a").typed("gpu").of(4, 4), alternatives=(other,))
    run(world)

    assert is_whole(world, "bert")
    assert all(
        str(pod.seen_as.node).startswith("old") for pod in world.pods.values() if "bert" in pod.uid
    )


def test_gang_starts_with_fewer_members_and_the_others_follow() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4))
    run(world)
    fewer = Alternative(min_members=1)
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(fewer,))
    run(world)
    bound = [pod.uid for pod in world.pods.values() if pod.seen_as.node and "bert" in pod.uid]
    assert len(bound) == 1
    assert _stated(world, bound[0]).startswith("1 of 1 (at least 1 member): as asked: ")

    world.delete(PodUid("first-0"))
    deliver(world)
    run(world)

    assert is_whole(world, "bert")


def test_waiting_gang_is_told_about_every_form() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4))
    submit(world, a_gang("second").in_vc("b").of(4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(_IN_B,))

    (told,) = notices(world).values()

    assert told == (
        "gang ns/bert needs 2 x 4 leaf cells, each member in one cell of VC a; 4 of the 8 leaf "
        "cells promised to VC a are unused; starts once other gangs of VC a have ended, or with a "
        "higher priority than theirs; alternative 1 of 1 (VC b): gang ns/bert needs 2 x 4 leaf "
        "cells, each member in one cell of VC b; 4 of the 8 leaf cells promised to VC b are unused"
    )


def test_cells_of_another_form_wake_a_waiting_gang() -> None:
    world = _world_of_two_types()
    submit(world, a_gang("first").in_vc("a").typed("gpu").of(4, 4))
    submit(world, a_gang("second").in_vc("a").typed("V100").of(4, 4))
    run(world)
    other = Alternative(leaf_type=LeafType("V100"))
    submit(world, a_gang("bert").in_vc("a").typed("gpu").of(4), alternatives=(other,))
    run(world)
    assert not is_whole(world, "bert")

    world.delete(PodUid("second-0"))
    deliver(world)
    run(world)

    assert is_whole(world, "bert")


def test_no_gang_is_ended_while_another_form_fits() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").at(0).of(4, 4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").at(5).of(4, 4), alternatives=(_IN_B,))
    run(world)

    assert is_whole(world, "first")
    assert is_whole(world, "bert")


def test_victims_are_ended_in_the_preferred_form_if_none_fits() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").at(0).of(4, 4))
    submit(world, a_gang("second").in_vc("b").at(0).of(4, 4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").at(5).of(4, 4), alternatives=(_IN_B,))
    run(world)
    run(world)

    assert is_whole(world, "bert")
    assert is_whole(world, "second")
    assert not is_whole(world, "first")
    assert _stated(world, "bert-0") == ""


def test_gang_that_loses_its_places_before_its_release_tries_all_forms_again() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4, 4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(_IN_B,))
    assert step(world)
    world.actions.clear()
    for uid in ("first-0", "first-1"):
        world.delete(PodUid(uid))
    deliver(world)
    world.lead()
    run(world)

    assert is_whole(world, "bert")
    assert _stated(world, "bert-0") == ""


def test_new_leader_keeps_the_form_of_a_released_gang() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4, 4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(_IN_B,))
    world.step()
    world.perform(0, is_done=True, is_told_done=True)  # one member of two is released
    world.actions.clear()
    world.lead()
    world.now += LEASE_SECONDS / 2
    run(world)

    assert is_whole(world, "bert")
    assert {gang.gang.name: gang.vc for gang in world.engine.gangs()} == {"first": "a", "bert": "b"}
    assert _stated(world, "bert-0").startswith("1 of 1 (VC b)")
    assert _stated(world, "bert-1").startswith("1 of 1 (VC b)")


def test_released_gang_that_loses_its_places_stays_in_its_form() -> None:
    world = world_of_two_vcs()
    submit(world, a_gang("first").in_vc("a").of(4, 4))
    run(world)
    submit(world, a_gang("bert").in_vc("a").of(4, 4), alternatives=(_IN_B,))
    release_all(world)
    world.now += 3 * LEASE_SECONDS
    world.step()
    for uid in ("first-0", "first-1"):
        world.delete(PodUid(uid))
    deliver(world)
    run(world)

    assert is_whole(world, "bert")
    assert [gang.vc for gang in world.engine.gangs()] == ["b"]


def test_members_with_other_alternatives_are_refused() -> None:
    world = world_of_two_vcs()
    gang = a_gang("bert").in_vc("a").of(4, 4)
    world.create(gang.member(0), size=2, alternatives=(_IN_B,))
    world.create(gang.member(1), size=2)
    deliver(world)

    (told,) = notices(world).values()

    assert "alternatives" in told
