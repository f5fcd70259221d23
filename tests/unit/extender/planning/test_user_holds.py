"""A gang that a user holds is not planned until the hold is lifted, and that time is no age."""

from datetime import UTC, datetime, timedelta

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
        by = "admin 2026-11-18T12:00:00+00:00 root"
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
        assert "released on 2026-11-18T13:00:00+00:00, or once" in plans.waiting()["lab/a"]
        plans.shell.now = 3601.0
        plans.planner.plan_soon()
        await plans.looked()
        assert _has_place(plans, "a")
        asked = plans.shell.pods.workloads.first_asked(plans.shell.pod("a"))
        assert asked == (START + timedelta(hours=1)).timestamp()


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
