"""Gangs that users swap: their places in the queue follow what their pods state.

A swap is an annotation of the pods of one of both gangs, so every leader knows it. If one of both
has started, the other one keeps the place that it was given; the leader writes that place on its
pods, because the pods of the first may be gone when another leader begins.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from extender.feeds.pod_feed import PodSink
from extender.outcomes.pod_events import PodEvents
from extender.planning.user_requests.swapped_places import format_place, read_place
from extender.queue.order.facts import QueueFacts
from extender.queue.order.ranking import Ranking
from extender.queue.order.standing import SwapState
from extender.queue.reserve.reservations import Reservations
from kube import marks
from kube.api.binder import PodRef
from kube.api.pod_writer import PodMarker
from kube.read.managed_pod import ManagedPod
from policy.errors import BackendError
from policy.queues.holds import STRENGTH
from policy.queues.swaps import SwapRequest
from policy.submission import GangKey, PodUid
from service.tasks import wait_up_to

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 2.0
_MARKED: Final = 3
"""Pods of a gang that state its place: one of them is enough."""


class UserSwaps:
    """The swaps of all gangs whose pods exist."""

    def __init__(
        self,
        pods: PodSink,
        *,
        ranking: Ranking,
        reservations: Reservations,
        marker: PodMarker,
        events: PodEvents,
        plan_soon: Callable[[], None],
    ) -> None:
        self._pods = pods
        self._ranking = ranking
        self._reservations = reservations
        self._marker = marker
        self._events = events
        self._plan_soon = plan_soon
        self._members: dict[GangKey, dict[PodUid, SwapRequest]] = {}
        """What members state, by gang."""
        self._unwritten: dict[GangKey, str] = {}
        """Places that are to be written on pods."""
        self._told: dict[GangKey, str] = {}
        self._news = asyncio.Event()
        ranking.swaps.on_kept.append(self._note_kept)
        ranking.swaps.reserved_at = self._reserved_at
        pods.on_appear.append(self._see)
        pods.on_end.append(self._forget)

    # -- what pods state

    def _see(self, pod: ManagedPod) -> None:
        gang = pod.gang.key
        known = self._members.get(gang, {}).get(pod.uid)
        if pod.swap != known:
            self._state(gang, pod.uid, pod.swap)
        place = read_place(pod.swapped_place) if pod.swapped_place and pod.is_gated else None
        if place is not None:
            self._ranking.keep_place(gang, *place)

    def _state(self, gang: GangKey, uid: PodUid, swap: SwapRequest | None) -> None:
        """Follow the member that states the swap which counts."""
        members = self._members.setdefault(gang, {})
        before = _counting(members)
        if swap is None:
            members.pop(uid, None)
        else:
            members[uid] = swap
        if not members:
            del self._members[gang]
        if _counting(members) != before:
            self._ranking.swap(gang, _counting(members))
            self._plan_soon()
            self._news.set()

    def _forget(self, pod: ManagedPod) -> None:
        gang = pod.gang.key
        if pod.uid in self._members.get(gang, {}):
            self._state(gang, pod.uid, None)
        if not self._pods.of_gang(gang):
            self._ranking.swaps.forget(gang)
            self._told.pop(gang, None)

    def _note_kept(self, gang: GangKey, request: SwapRequest, place: QueueFacts) -> None:
        self._unwritten[gang] = format_place(request, place)
        self._news.set()

    def _reserved_at(self, gang: GangKey) -> float | None:
        one = self._reservations.find(gang)
        return None if one is None else one.made_at

    # -- what the leader does

    async def run(self) -> NoReturn:
        """Tell owners what became of swaps, and write places on pods, until cancelled."""
        while True:
            await wait_up_to(_EVERY_SECONDS, self._news)
            self._news.clear()
            await self.update()

    async def update(self) -> None:
        """Tell owners what has changed, and write down the places that gangs keep."""
        for gang in self._ranking.swaps.stated():
            ranked = self._ranking.find(gang)
            if ranked is not None and ranked[1].swap is not None:
                self._tell(gang, self._ranking.unheeded_swap(gang) or ranked[1].swap)
        for gang, text in list(self._unwritten.items()):
            try:
                await self._write(gang, text)
            except BackendError as exc:
                logger.warning("place not written, will retry", extra={"error": str(exc)})
            else:
                self._unwritten.pop(gang, None)

    async def _write(self, gang: GangKey, text: str) -> None:
        waiting = [pod for pod in self._pods.of_gang(gang) if pod.is_gated]
        for pod in sorted(waiting, key=lambda pod: (pod.created, pod.uid))[:_MARKED]:
            await self._marker.mark(PodRef.of(pod), marks.PLACE_ANNOTATION, text)

    def _tell(self, gang: GangKey, state: SwapState) -> None:
        user, other = state.request.describe_user(), state.request.other
        if state.place is not None:
            reason, told = "Swapped", f"{user} swapped gang {gang} with gang {other}"
        else:
            reason = "NotSwapped"
            asked = f"{user} asked to swap gang {gang} with gang {other}"
            told = f"{asked}; that is not in force: {state.why_not}"
        pod = next((pod for pod in self._pods.of_gang(gang) if pod.is_gated), None)
        if self._told.get(gang) != told and pod is not None:
            self._told[gang] = told
            self._events.swapped(pod, reason, told)
            logger.info("swap changed", extra={"gang": str(gang), "why": told})


def _counting(members: dict[PodUid, SwapRequest]) -> SwapRequest | None:
    """Return the swap by the strongest role, so that no owner replaces an admin's; then the latest.

    The webhook looks at one member only.
    """
    return max(members.values(), key=_strength, default=None)


def _strength(swap: SwapRequest) -> tuple[int, float, GangKey]:
    return STRENGTH[swap.role], swap.at, swap.other
