"""The hold of an admin outlasts its pods: the owner does not lift it by deleting them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from extender.planning.user_requests.kept_hold_writer import KeptHoldWriter
from kube import marks
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.api.pod_writer import PodMarker
from policy.queues.holds import Hold, format_hold, parse_hold
from policy.submission import PodUid
from tests.support.extender.planning import Planning, planning
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark

ADMIN = "admin 2026-11-18T12:00:00Z root"


class _Marker(PodMarker):
    """Keeps what is written on pods."""

    def __init__(self) -> None:
        self.written: dict[str, dict[str, str]] = {}
        self.is_away = False

    async def mark_all(self, pod: PodRef, annotations: Any) -> None:
        if self.is_away:
            raise KubeError("away", status=500)
        self.written[pod.name] = dict(annotations)


def _pod(name: str, hold: str | None = None, *, by: str = ADMIN, job: str = "job") -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").gated().submitted_by("alice")
    pod = pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark(job))
    pod = pod._changed("metadata", creationTimestamp="2026-11-18T12:00:00Z")
    if hold is None:
        return pod
    held_by = marks.HELD_BY_ANNOTATION
    return pod.annotated(marks.HOLD_ANNOTATION, hold).annotated(held_by, by)


def _member(name: str, hold: str | None = None, *, by: str = ADMIN) -> PodBuilder:
    return _pod(name, hold, by=by).in_gang("bert", size=2, min_size=1)


def _has_place(plans: Planning, name: str) -> bool:
    return plans.shell.cluster.has_place(PodUid(f"uid-of-{name}"))


async def _written(plans: Planning) -> dict[str, dict[str, str]]:
    marker = _Marker()
    await KeptHoldWriter(plans.holds, marker=marker).update()
    return marker.written


async def test_the_pod_that_replaces_a_held_one_is_held() -> None:
    async with planning() as plans:
        plans.add_nodes()
        held = _pod("a", "maintenance")
        plans.pods.upsert(held)
        await plans.looked()
        plans.pods.remove(dict(held))
        plans.pods.upsert(_pod("b"))
        plans.pods.upsert(_pod("x", job="other"))
        await plans.looked()
        assert not _has_place(plans, "b")
        assert _has_place(plans, "x")
        assert plans.waiting()["lab/b"].startswith("the policy admin root holds gang lab/b: main")
        told = {marks.HOLD_ANNOTATION: "maintenance", marks.HELD_BY_ANNOTATION: ADMIN}
        assert await _written(plans) == {"b": told}
        plans.pods.upsert(_pod("b", "maintenance"))
        assert await _written(plans) == {}
        plans.pods.upsert(_pod("b"))
        await plans.looked()
        assert _has_place(plans, "b"), "an admin has removed the annotation"
        plans.pods.upsert(_pod("c"))
        await plans.looked()
        assert _has_place(plans, "c"), "and no later pod is held"


async def test_a_gang_stays_held_when_its_held_member_is_deleted() -> None:
    async with planning() as plans:
        plans.add_nodes()
        held = _member("a", "maintenance")
        plans.pods.upsert(held)
        plans.pods.upsert(_member("b"))
        await plans.looked()
        plans.pods.remove(dict(held))
        await plans.looked()
        assert not _has_place(plans, "b"), "one member is enough to start"
        plans.pods.upsert(_member("c"))
        await plans.looked()
        assert not _has_place(plans, "b")
        assert not _has_place(plans, "c")
        assert sorted(await _written(plans)) == ["b", "c"]


async def test_a_workload_that_is_suspended_and_resumed_stays_held() -> None:
    async with planning() as plans:
        plans.add_nodes()
        pods = [_member("a", "maintenance"), _member("b", "maintenance")]
        for pod in pods:
            plans.pods.upsert(pod)
        for pod in pods:
            plans.pods.remove(dict(pod))
        await plans.looked()
        for name in "cd":
            plans.pods.upsert(_member(name))
        await plans.looked()
        assert not _has_place(plans, "c")
        assert plans.waiting()["lab/bert"].startswith("the policy admin root holds gang lab/bert")


async def test_a_hold_that_the_owner_wrote_on_the_template_does_not_hide_that_of_an_admin() -> None:
    async with planning() as plans:
        plans.add_nodes()
        held = _pod("a", "maintenance")
        plans.pods.upsert(held)
        plans.pods.remove(dict(held))
        over = "mine; until=2020-01-01T00:00:00Z"
        plans.pods.upsert(_pod("b", over, by="owner creation alice"))
        await plans.looked()
        assert not _has_place(plans, "b")


@pytest.mark.parametrize(
    ("hold", "by"),
    [
        ("mine", "owner creation alice"),
        ("once; until=2020-01-01T00:00:00Z", ADMIN),
        ("second; after=lab/gone", ADMIN),
    ],
    ids=["of its owner", "over", "after a gang that has ended"],
)
async def test_other_holds_end_with_their_pods(hold: str, by: str) -> None:
    async with planning() as plans:
        plans.add_nodes()
        held = _pod("a", hold, by=by).in_gang("other", size=2)
        plans.pods.upsert(held)
        plans.pods.remove(dict(held))
        plans.pods.upsert(_pod("b").in_gang("other", size=1))
        await plans.looked()
        assert _has_place(plans, "b")


async def test_pods_that_existed_beside_a_held_one_are_not_held() -> None:
    async with planning() as plans:
        held = _pod("a", "maintenance")
        plans.pods.upsert(held)
        plans.pods.upsert(_pod("b"))
        plans.pods.remove(dict(held))
        plans.pods.upsert(_pod("b"))
        plans.pods.upsert(_pod("c"))
        plans.add_nodes()
        await plans.looked()
        assert _has_place(plans, "b")
        assert not _has_place(plans, "c")


async def test_a_hold_that_cannot_be_written_is_written_later() -> None:
    async with planning() as plans:
        held = _pod("a", "maintenance")
        plans.pods.upsert(held)
        plans.pods.remove(dict(held))
        plans.pods.upsert(_pod("b"))
        marker = _Marker()
        writer = KeptHoldWriter(plans.holds, marker=marker)
        marker.is_away = True
        await writer.update()
        marker.is_away = False
        await writer.update()
        assert [*marker.written] == ["b"]


@pytest.mark.parametrize(
    "hold",
    [
        Hold(reason="data; is copied"),
        Hold(reason="x", until=datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp()),
        Hold(reason="x", after=("lab", "bert")),
    ],
)
def test_a_hold_is_read_as_it_is_written(hold: Hold) -> None:
    assert parse_hold(format_hold(hold)) == hold
