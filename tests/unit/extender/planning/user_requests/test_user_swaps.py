"""Gangs that users swap have each other's places, also for the next leader."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from extender.outcomes.pod_events import PodEvents
from extender.planning.user_requests.swapped_places import format_place, read_place
from extender.planning.user_requests.user_swaps import UserSwaps
from extender.queue.forecast.model import RunTime
from extender.queue.order.listing import Ranked
from kube import marks
from kube.api.binder import PodRef
from kube.api.client import KubeError
from kube.api.pod_writer import PodMarker
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest, format_swap, read_swap
from policy.submission import GangKey, LeafType
from tests.support.extender.planning import Planning, planning
from tests.support.kube.events import KeptEvents
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.queue.orders import facts

AT = 1_780_000_000.0


class _Marker(PodMarker):
    """Keeps what is written on pods."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        self.is_away = False

    async def mark(self, pod: PodRef, annotation: str, text: str) -> None:
        assert annotation == marks.PLACE_ANNOTATION
        if self.is_away:
            raise KubeError("away", status=500)
        self.written[pod.uid] = text


class _Swapping:
    def __init__(self, plans: Planning) -> None:
        self.plans = plans
        self.marker, self.events = _Marker(), KeptEvents()
        self.swaps = UserSwaps(
            plans.shell.pods,
            ranking=plans.planner.ranking,
            reservations=plans.planner.reservations,
            marker=self.marker,
            events=PodEvents(self.events),
            plan_soon=plans.planner.plan_soon,
        )

    async def order(self) -> list[str]:
        await self.plans.looked()
        await self.swaps.update()
        return [one.gang.name for one, _ in self.plans.planner.ranking.in_order()]

    def of(self, name: str) -> Ranked:
        found = self.plans.planner.ranking.find(GangKey("lab", name))
        assert found is not None
        return found


@asynccontextmanager
async def _swapping() -> AsyncIterator[_Swapping]:
    async with planning() as plans:
        yield _Swapping(plans)


def _pod(
    name: str,
    *,
    second: int = 0,
    with_: str | None = None,
    at: float = AT,
    role: HoldRole = HoldRole.OWNER,
) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").gated().submitted_by("alice")
    pod = pod._changed("metadata", creationTimestamp=f"2026-11-18T12:00:{second:02}Z")
    if with_ is None:
        return pod
    swap = SwapRequest(other=GangKey("lab", with_), role=role, user="alice", at=at)
    pod = pod.annotated(marks.SWAP_ANNOTATION, with_)
    return pod.annotated(marks.SWAPPED_BY_ANNOTATION, format_swap(swap))


async def test_a_swap_is_in_force_until_its_annotation_is_removed() -> None:
    async with _swapping() as world:
        for second, name in enumerate("abc"):
            world.plans.pods.upsert(_pod(name, second=second))
        assert await world.order() == ["a", "b", "c"]
        world.plans.pods.upsert(_pod("c", second=2, with_="a"))
        assert await world.order() == ["c", "b", "a"]
        assert [one.reason for one in world.events.written] == ["Swapped"]
        told = "its owner alice swapped gang lab/c with gang lab/a"
        assert world.events.written[0].message == told
        world.plans.pods.upsert(_pod("c", second=2))
        assert await world.order() == ["a", "b", "c"]


async def test_a_swap_waits_for_both_gangs_and_says_why() -> None:
    async with _swapping() as world:
        world.plans.pods.upsert(_pod("b", second=1))
        world.plans.pods.upsert(_pod("c", second=2, with_="a"))
        assert await world.order() == ["b", "c"]
        assert world.events.written[0].reason == "NotSwapped"
        assert world.events.written[0].message == (
            "its owner alice asked to swap gang lab/c with gang lab/a; that is not in force: gang "
            "lab/a does not wait for cells"
        )
        world.plans.pods.upsert(_pod("a"))
        assert await world.order() == ["c", "b", "a"]


async def test_the_first_of_two_swaps_counts() -> None:
    async with _swapping() as world:
        for second, name in enumerate("abc"):
            world.plans.pods.upsert(_pod(name, second=second))
        world.plans.pods.upsert(_pod("b", second=1, with_="a", at=AT))
        world.plans.pods.upsert(_pod("c", second=2, with_="a", at=AT + 1))
        assert await world.order() == ["b", "a", "c"]
        swap = world.of("c")[1].swap
        assert swap is not None
        assert swap.why_not == "one of both is part of an earlier swap"
        world.plans.pods.upsert(_pod("b", second=1))
        assert await world.order() == ["c", "b", "a"]


async def test_the_second_swap_of_a_gang_that_is_swapped_is_not_in_force_and_says_why() -> None:
    async with _swapping() as world:
        for second, name in enumerate("abc"):
            world.plans.pods.upsert(_pod(name, second=second))
        world.plans.pods.upsert(_pod("b", second=1, with_="a", at=AT))
        assert await world.order() == ["b", "a", "c"]
        world.plans.pods.upsert(_pod("a", with_="c", at=AT + 1))
        assert await world.order() == ["b", "a", "c"]
        assert world.events.written[-1].reason == "NotSwapped"
        assert world.events.written[-1].message == (
            "its owner alice asked to swap gang lab/a with gang lab/c; that is not in force: one "
            "of both is part of an earlier swap"
        )


async def test_an_owner_does_not_replace_the_swap_of_an_admin_by_way_of_another_member() -> None:
    async with _swapping() as world:
        for second, name in enumerate("ab"):
            world.plans.pods.upsert(_pod(name, second=second))
        swapped = _pod("m0", second=2, with_="a", role=HoldRole.ADMIN)
        world.plans.pods.upsert(swapped.in_gang("m", size=2))
        world.plans.pods.upsert(_pod("m1", second=2).in_gang("m", size=2))
        assert await world.order() == ["m", "b", "a"]
        later = _pod("m1", second=2, with_="b", at=AT + 60)
        world.plans.pods.upsert(later.in_gang("m", size=2))
        assert await world.order() == ["m", "b", "a"]


async def test_a_gang_keeps_its_place_for_the_next_leader_when_the_other_one_has_started() -> None:
    async with _swapping() as world:
        for second, name in enumerate("abcdef"):
            world.plans.pods.upsert(_pod(name, second=second))
        world.plans.pods.upsert(_pod("f", second=5, with_="a"))
        assert await world.order() == [*"fbcdea"]
        world.marker.is_away = True
        world.plans.add_nodes()
        assert await world.order() == ["e", "a"], "four have started, f first"
        assert world.marker.written == {}
        world.marker.is_away = False
        await world.swaps.update()
        (text,) = world.marker.written.values()
    async with _swapping() as later:
        for second, name in enumerate("abcde"):
            later.plans.pods.upsert(_pod(name, second=second))
        later.plans.pods.upsert(_pod("a").annotated(marks.PLACE_ANNOTATION, text))
        assert await later.order() == [*"bcdea"]


def test_places_and_swaps_are_read_as_they_are_written() -> None:
    other = GangKey("lab", "b", "0b1c2d3e-0000-0000-0000-000000000000")
    swap = SwapRequest(other=other, role=HoldRole.ADMIN, user="the root", at=AT)
    assert read_swap(format_swap(swap)) == swap
    place = replace(
        facts(asked=AT),
        gang=other,
        group="vision",
        leaf_type=LeafType("A100"),
        run_time=RunTime(median=60.0, limit=600.0),
    )
    assert read_place(format_place(swap, place)) == (swap, place)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"swap": 7}', '{"user": "a", "vc": []}'])
def test_other_texts_are_no_place(text: str) -> None:
    assert read_place(text) is None


@pytest.mark.parametrize("text", ["", "owner", "owner now a/b alice", "king 2026 a/b alice"])
def test_other_texts_are_no_swap(text: str) -> None:
    assert read_swap(text) is None
