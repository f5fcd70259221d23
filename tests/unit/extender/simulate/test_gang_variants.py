"""What would let gangs start earlier: of gangs that wait, and of gangs that do not exist yet."""

from json import dumps
from typing import Any

from extender.inspection.queue.variant_view import show_variants
from extender.queue.reserve.model import entry_key
from extender.queue.variants.model import (
    Change,
    ChangeKind,
    StartKind,
    Variant,
    Variants,
)
from policy.documents.alternatives_list import parse_alternatives
from policy.submission import GangKey
from tests.support.background import background
from tests.support.extender.simulating import SimulatedWorld
from tests.support.kube.pods import a_new_pod
from tests.support.policy.cluster_texts import hived_text
from tests.support.policy.documents import HEAD

IDENTITY = f"""{HEAD}Identity
vcs: {{spare: {{users: [alice]}}}}
"""
RULES = f"""{HEAD}Rules
rules:
- {{vc: "^strict$", then: oppo}}
- {{vc: "^counted$", occupied: "> 40", then: fail}}
"""


def _world(**policies: str) -> SimulatedWorld:
    """Three nodes for VC lab, one for VC spare."""
    return SimulatedWorld(hived_text(lab=3, spare=1), **policies)


def _pods(name: str, *, size: int, gpus: int = 8, cpu: str = "1") -> list[dict[str, Any]]:
    pods = (a_new_pod(f"{name}-{index}", namespace="lab") for index in range(size))
    return [
        dict(
            pod.with_gpus(gpus).with_cpu(cpu).in_vc("lab").of_class("prod").in_gang(name, size=size)
        )
        for pod in pods
    ]


async def _create(world: SimulatedWorld, pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        assert (await world.create(pod, user="alice")).is_allowed
    await world.settle()


def _told(variants: Variants | None) -> list[str]:
    shown = show_variants(variants)
    return [one["explanation"] for one in shown["whatWouldChangeIt"]["variants"]] if shown else []


async def test_a_waiting_gang_is_told_what_starts_now() -> None:
    world = _world(identity=IDENTITY)
    async with background(world.plans.planner.run()):
        await _create(world, _pods("first", size=1))
        await _create(world, _pods("large", size=3))
        found = await world.variants.of_waiting(GangKey("lab", "large"))
    told = _told(found)  # perhaps its own reservation keeps others off the two nodes
    assert [one.removesuffix(" if this gang is deleted before") for one in told] == [
        "with 2 members instead of 3 it starts now",
        "with 4 leaf cells per member instead of 8 it starts now",
    ]


async def test_another_vc_is_told_if_it_is_open_to_the_owner() -> None:
    for opens, told in ((IDENTITY, True), (IDENTITY.replace("alice", "carol"), False)):
        world = _world(identity=opens)
        async with background(world.plans.planner.run()):
            await _create(world, _pods("first", size=3))
            await _create(world, _pods("small", size=1))
            found = await world.variants.of_waiting(GangKey("lab", "small"))
        assert ("in VC spare instead of lab it starts now" in _told(found)) is told


async def test_cpu_counts_for_variants_as_for_gangs() -> None:
    world = _world()
    async with background(world.plans.planner.run()):
        await _create(world, _pods("large", size=4, gpus=2, cpu="40"))
        found = await world.variants.of_waiting(GangKey("lab", "large"))
    assert _told(found) == ["with 3 members instead of 4 it starts now"]  # one on a node


async def test_a_simulated_gang_is_told_the_same_as_one_that_waits() -> None:
    world = _world(identity=IDENTITY)
    async with background(world.plans.planner.run()):
        await _create(world, _pods("first", size=1))
        pods = _pods("large", size=3)
        told = await world.simulate(pods[0], user="alice")
        await _create(world, pods)
        found = await world.variants.of_waiting(GangKey("lab", "large"))
    assert found is not None
    assert told.variants is not None
    assert [one.change for one in told.variants.found] == [one.change for one in found.found]
    assert _told(told.variants)[0] == "with 2 members instead of 3 it starts now"


async def test_a_gang_with_places_has_none() -> None:
    world = _world()
    async with background(world.plans.planner.run()):
        told = await world.simulate(_pods("first", size=1)[0], user="alice")
        await _create(world, _pods("first", size=1))
        found = await world.variants.of_waiting(GangKey("lab", "first"))
    assert (told.variants, found) == (None, None)
    assert await world.variants.of_waiting(GangKey("lab", "unknown")) is None


async def test_an_answer_is_kept_for_a_moment() -> None:
    world = _world()
    async with background(world.plans.planner.run()):
        await _create(world, _pods("large", size=4))
        first = await world.variants.of_waiting(GangKey("lab", "large"))
        assert await world.variants.of_waiting(GangKey("lab", "large")) is first
        world.plans.shell.now += 6
        again = await world.variants.of_waiting(GangKey("lab", "large"))
        assert again is not first


async def test_vcs_in_which_rules_lower_or_refuse_a_gang_are_left_out() -> None:
    world = SimulatedWorld(
        hived_text(lab=1, strict=1, counted=1, spare=1), rules=RULES, identity=IDENTITY
    )
    await _create(world, _pods("large", size=1))
    pod = world.plans.shell.pod("large-0")
    assert await world.open_vcs.of_gang(pod, leaf_count=8, members=1) == ["counted", "spare"]
    world.ledger.is_away = True
    assert await world.open_vcs.of_gang(pod, leaf_count=8, members=1) == ["spare"]


def test_names_of_other_gangs_are_for_readers_of_the_whole_queue() -> None:
    variant = Variant(
        change=Change(kind=ChangeKind.LIMIT, before=None, after=60),
        start=StartKind.NOW,
        reservation=GangKey("vision", "bert-7"),
        until=1000.0,
    )
    variants = Variants(at=0.0, found=(variant,))
    for viewer, name in ((None, "vision/bert-7"), ("alice", "another gang")):
        (shown,) = show_variants(variants, viewer=viewer)["whatWouldChangeIt"]["variants"]
        assert shown["explanation"] == (
            "with activeDeadlineSeconds of at most 60 it starts now, and ends before "
            f"1970-01-01T00:16:40Z, when its leaf cells are needed for the reservation of {name}"
        )
        assert ("reservedFor" in shown) is (viewer is None)


def test_a_variant_that_preempts_is_told_by_when_it_ends() -> None:
    variant = Variant(
        change=Change(kind=ChangeKind.MEMBERS, before=4, after=2),
        start=StartKind.PREEMPTING,
        victims=1,
        reservation=entry_key("nightly"),
        until=1000.0,
    )
    (shown,) = show_variants(Variants(at=0.0, found=(variant,)), viewer="alice")[
        "whatWouldChangeIt"
    ]["variants"]
    assert shown["explanation"] == (
        "with 2 members instead of 4 it starts once 1 gang that it preempts has ended, and ends "
        "before 1970-01-01T00:16:40Z, when its leaf cells are needed for the advance reservation "
        "nightly"
    )
    assert shown["advanceReservation"] == "nightly"
    assert "reservedFor" not in shown


def test_a_variant_is_shown_as_the_alternative_that_would_allow_it() -> None:
    for kind, after, expected in (
        (ChangeKind.LEAF_TYPE, "V100", '[{"leafType": "V100"}]'),
        (ChangeKind.VC, "shared", '[{"vc": "shared"}]'),
        (ChangeKind.MEMBERS, 2, '[{"minMembers": 2}]'),
        (ChangeKind.LEAF_CELLS, 2, None),
    ):
        change = Change(kind=kind, before=4, after=after)
        variants = Variants(at=0.0, found=(Variant(change=change, start=StartKind.NOW),))
        (shown,) = show_variants(variants)["whatWouldChangeIt"]["variants"]
        entry = shown.get("alternative")
        assert (None if entry is None else dumps([entry])) == expected
        if expected is not None:
            assert parse_alternatives(expected, path="") == (change.alternative,)
