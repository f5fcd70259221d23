"""A gang that a user holds is not planned until the hold is lifted, and that time is no age."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import FrameType

from kube import marks
from policy.submission import PodUid
from service.clock import Clock
from tests.support.extender.planning import Planning, planning
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod

START = datetime(2026, 11, 18, 12, tzinfo=UTC)


class _Timed(Shell):
    """A shell whose wall clock is its monotonic one."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(
            monotonic=lambda: self.now, now=lambda: START + timedelta(seconds=self.now)
        )


def _pod(name: str, hold: str | None = None, *, by: str = "owner creation alice") -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").gated().submitted_by("alice")
    pod = pod._changed("metadata", creationTimestamp="2026-11-18T12:00:00Z")
    if hold is None:
        return pod
    held_by = marks.HELD_BY_ANNOTATION
    return pod.annotated(marks.HOLD_ANNOTATION, hold).annotated(held_by, by)


def _has_place(plans: Planning, name: str) -> bool:
    return plans.shell.cluster.has_place(PodUid(f"uid-of-{name}"))


LIFT = (
    "once the annotation `cellgate.io/hold` is removed from its pods; the owner, an admin of the "
    "owner's group or a policy admin may lift that"
)


async def test_a_held_gang_is_not_planned_and_says_who_holds_it() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a", "data is copied"))
        await plans.looked()
        assert not _has_place(plans, "a")
        assert plans.waiting() == {
            "lab/a": f"its owner alice holds gang lab/a: data is copied; released {LIFT}"
        }
        plans.pods.upsert(_pod("a"))
        await plans.looked()
        assert _has_place(plans, "a")
        assert plans.waiting() == {}


async def test_one_member_holds_its_whole_gang() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a").in_gang("bert", size=2))
        plans.pods.upsert(_pod("b", "later").in_gang("bert", size=2))
        await plans.looked()
        assert not _has_place(plans, "a")
        assert [*plans.waiting()] == ["lab/bert"]
        plans.pods.upsert(_pod("b").in_gang("bert", size=2))
        await plans.looked()
        assert _has_place(plans, "a")
        assert _has_place(plans, "b")


async def test_a_waiting_gang_leaves_the_queue_when_it_is_held() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.pods.upsert(_pod("a"))
        await plans.looked()
        by = "admin 2026-11-18T12:00:00Z root"
        plans.pods.upsert(_pod("a", "maintenance", by=by))
        await plans.looked()
        plans.add_nodes()
        await plans.looked()
        assert not _has_place(plans, "a")
        (entry,) = plans.shell.waiting
        assert entry.reason.code == "held-by-admin"
        assert entry.reason.text.endswith("a policy admin may lift that")
        assert plans.waiting()["lab/a"].startswith("the policy admin root holds gang lab/a: main")


async def test_a_hold_ends_at_its_time_and_does_not_count_as_age() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a", "at night; until=2026-11-18T13:00:00Z"))
        await plans.looked()
        assert not _has_place(plans, "a")
        assert "released on 2026-11-18T13:00:00Z, or once" in plans.waiting()["lab/a"]
        plans.shell.now = 3601.0
        plans.planner.plan_soon()
        await plans.looked()
        assert _has_place(plans, "a")
        asked = plans.shell.pods.workloads.first_asked(plans.shell.pod("a"))
        assert asked == (START + timedelta(hours=1)).timestamp()


async def test_a_hold_ends_at_its_time_although_the_clock_was_ahead_once() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a", "at night; until=2026-11-18T13:00:00Z").in_gang("x", size=2))
        plans.pods.upsert(_pod("b", "later").in_gang("x", size=2))
        for now in (3601.0, 600.0):
            plans.shell.now = now
            plans.planner.plan_soon()
            await plans.looked()
        plans.pods.upsert(_pod("b").in_gang("x", size=2))
        await plans.looked()
        assert not _has_place(plans, "a")
        plans.shell.now = 3601.0
        plans.planner.plan_soon()
        await plans.looked()
        assert _has_place(plans, "a")


async def test_a_hold_ends_with_another_gang() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("first"))
        plans.pods.upsert(_pod("a", "second; after=lab/first"))
        await plans.looked()
        assert _has_place(plans, "first")
        assert not _has_place(plans, "a")
        assert "released once gang lab/first has ended, or once" in plans.waiting()["lab/a"]
        plans.shell.now = 60.0
        plans.pods.remove(dict(_pod("first")))
        await plans.looked()
        assert _has_place(plans, "a")
        asked = plans.shell.pods.workloads.first_asked(plans.shell.pod("a"))
        assert asked == START.timestamp() + 60


async def test_a_hold_comes_too_late_for_a_gang_that_has_its_places() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a"))
        await plans.looked()
        plans.pods.upsert(_pod("a", "too late"))
        await plans.looked()
        assert _has_place(plans, "a")
        assert plans.waiting() == {}


async def test_earlier_holds_do_not_count_as_age() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.pods.upsert(_pod("a").annotated(marks.HELD_SECONDS_ANNOTATION, "600"))
        await plans.looked()
        asked = plans.shell.pods.workloads.first_asked(plans.shell.pod("a"))
        assert asked == START.timestamp() + 600


async def test_holds_that_wait_for_each_other_say_so_until_one_is_removed() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        plans.pods.upsert(_pod("a"))
        plans.pods.upsert(_pod("b"))
        plans.pods.upsert(_pod("a", "second; after=lab/b"))
        plans.pods.upsert(_pod("b", "third; after=lab/c"))
        plans.pods.upsert(_pod("c", "first; after=lab/a"))
        await plans.looked()
        ends = "it waits for the end of a gang that waits for its own end, so that neither starts"
        told = plans.waiting()
        assert {gang: ends in text for gang, text in told.items()} == {
            "lab/a": True,
            "lab/b": True,
            "lab/c": True,
        }
        assert "removed from its pods or from those of lab/b and lab/c;" in told["lab/a"]
        plans.pods.upsert(_pod("c"))
        await plans.looked()
        assert _has_place(plans, "c")
        assert "released once gang lab/b has ended" in plans.waiting()["lab/a"]
        assert "released once gang lab/c has ended" in plans.waiting()["lab/b"]


async def test_a_gang_that_waits_for_a_circle_is_not_part_of_it() -> None:
    async with planning(shell=_Timed()) as plans:
        plans.add_nodes()
        for name, after in (("a", "b"), ("b", "c"), ("c", "b")):
            plans.pods.upsert(_pod(name, f"later; after=lab/{after}"))
        for name, after in (("a", "b"), ("b", "c"), ("c", "b")):
            plans.pods.upsert(_pod(name, f"again; after=lab/{after}"))
        await plans.looked()
        told = plans.waiting()
        assert "released once gang lab/b has ended" in told["lab/a"]
        assert "so that neither starts" in told["lab/b"]


def _calls(work: Callable[[], None]) -> int:
    """Count the calls of Python functions that a piece of work makes."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _over(gangs: int) -> Planning:
    """Return a planner of gangs that waited for the end of others, which have ended."""
    plans = Planning(shell=_Timed())
    for number in range(gangs):
        plans.pods.upsert(_pod(f"first-{number}"))
        plans.pods.upsert(_pod(f"a-{number}", f"second; after=lab/first-{number}"))
    for number in range(gangs):
        plans.pods.remove(_pod(f"first-{number}"))
    for _ in range(3):
        plans.planner._held.by_users.update()
    return plans


def test_a_step_does_not_grow_with_holds_that_are_over() -> None:
    """The annotations stay on pods that run, for as long as these run."""
    few, many = (_over(number).planner._held.by_users for number in (10, 100))
    assert _calls(many.update) == _calls(few.update)


def test_a_standby_keeps_nothing_of_held_gangs_that_are_gone() -> None:
    plans = Planning(shell=_Timed())  # its loop does not run
    for number in range(500):
        for member in "ab":
            pod = _pod(f"{number}{member}", "later; until=2099-01-01T00:00:00Z")
            plans.pods.upsert(pod.in_gang(f"g{number}", size=2))
        for member in "ab":
            plans.pods.remove(_pod(f"{number}{member}").in_gang(f"g{number}", size=2))
    holds = plans.holds
    kept = (holds._members, holds._in_force, holds._held_names, holds._to_review)
    assert not any(kept)
    assert len(holds._due) <= 201


def test_a_hold_does_not_grow_with_other_holds() -> None:
    few, many = Planning(shell=_Timed()), Planning(shell=_Timed())
    for plans, number in ((few, 10), (many, 200)):
        for one in range(number):
            plans.pods.upsert(_pod(f"a-{one}", "later"))
    one_more = _pod("b", "later")
    assert _calls(lambda: many.pods.upsert(one_more)) == _calls(lambda: few.pods.upsert(one_more))


def test_thousands_of_gangs_that_wait_for_one_are_released_in_several_steps() -> None:
    plans = Planning(shell=_Timed())
    holds = plans.planner._held.by_users
    plans.pods.upsert(_pod("first"))
    for number in range(450):
        plans.pods.upsert(_pod(f"a-{number:03}", "second; after=lab/first"))
    plans.pods.remove(_pod("first"))
    held = []
    for _ in range(3):
        holds.update()
        held.append(sum(holds.is_held(plans.shell.pod(f"a-{one:03}")) for one in range(450)))
    assert held == [250, 50, 0]
