"""Every waiting gang, as `/v1/waiting` and the metrics show it.

The list of outcomes has the gangs that were told why they wait. A gang whose pods were created a
moment ago is not in it yet; it is found by its gated pods.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from extender.cells.lasting_sentences import lasting_text
from extender.cells.model import Reason, ReasonCode
from extender.cells.reason_kinds import may_start_unchanged, waits_for
from extender.cells.views.listings import Stepwise
from extender.cells.wording import explain
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import single_gang
from extender.inspection.json_views import JsonObject, if_any
from extender.inspection.queue.queue_view import show_standing
from extender.inspection.queue.reservation_view import show_reservation
from extender.outcomes.waiting_list import RefusedPod, WaitingEntry, WaitingList
from extender.queue.order.listing import ListedGang, Ranked, list_gangs
from extender.queue.reserve.defragmentation import ProposedMoves
from extender.queue.reserve.model import Reservation
from kube.read.managed_pod import ManagedPod
from policy.queues.queues import Queues
from policy.submission import GangKey, PodUid
from policy.wording import moment
from service.clock import Clock
from service.tasks import in_slices


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place of a gang in the order in which gangs are planned or charged."""

    queue: str
    listed: ListedGang


Order = Callable[[], Iterable[Ranked]]
CELLS_QUEUE: Final = "cells"
"""The queue of gangs that wait for cells."""
QUOTA_QUEUE: Final = "quota"
"""The queue of gangs that wait for quota."""
_MANY: Final = 1_000
_AT_ONCE: Final = 100
_KEPT_SECONDS: Final = 1.0
"""How long places are kept once they are many: every user may ask for them, again and again."""
_OF_OTHERS: Final = ("after", "behindReservations", "withoutHistory")
"""Fields of an expected start that name other gangs."""
_WITHOUT_CHANCE: Final = "as the gang and the cluster are, it cannot start: its reason says why"


class WaitingView:
    """Shows waiting gangs; changes nothing."""

    def __init__(
        self,
        waiting: WaitingList,
        *,
        pods: PodSink,
        has_place: Callable[[PodUid], bool],
        orders: Mapping[str, Order],
        lacks: Callable[[ManagedPod], Sequence[str]],
        held_reason: Callable[[GangKey], Reason | None],
        queues: Callable[[], Queues],
        clock: Clock,
    ) -> None:
        """`orders` are the orders in which gangs are considered, by the name of the queue.

        `lacks` says which limits have no room for the gang of a pod that waits for quota.
        `held_reason` explains why the bindings of a gang are held, if they are.
        """
        self.expected_start: Callable[[GangKey], JsonObject | None] = lambda _: None
        """Tells when a gang that waits for cells is expected to start."""
        self.held_reason = held_reason
        self._waiting = waiting
        self._pods = pods
        self._has_place = has_place
        self._orders = orders
        self._lacks = lacks
        self._queues = queues
        self._clock = clock
        self._placed: tuple[float, dict[GangKey, QueuePlace]] | None = None
        """The places of many gangs, and until when they are shown."""
        self.moves_for: Callable[[GangKey], ProposedMoves | None] = lambda _: None
        """Tells which moves of other gangs would let a gang with a reservation start earlier."""
        self.reservation_of: Callable[[GangKey], Reservation | None] = lambda _: None
        """Returns the reservation of a gang, or the last one that it had."""

    def __iter__(self) -> Iterator[WaitingEntry]:
        return chain(self._waiting, self._unplanned())

    def of_pod(self, pod: ManagedPod) -> WaitingEntry | None:
        """Return why a pod waits; None if it does not."""
        found = self._waiting.of_pod(pod)
        return found or (self._not_planned(pod) if self._is_held(pod) else None)

    async def places(self) -> dict[GangKey, QueuePlace]:
        """Return the place of every gang that has one; of many, as it was a moment ago."""
        return await in_slices(self._list_places())

    def _list_places(self) -> Stepwise[dict[GangKey, QueuePlace]]:
        now = self._clock.monotonic()
        if self._placed is not None and now < self._placed[0]:
            return self._placed[1]
        found: dict[GangKey, QueuePlace] = {}
        for queue, order in self._orders.items():
            for gang, listed in (yield from list_gangs(order())).items():
                found[gang] = QueuePlace(queue, listed)
                if len(found) % _AT_ONCE == 0:
                    yield
        self._placed = (now + _KEPT_SECONDS, found) if len(found) >= _MANY else None
        return found

    def show(self, entry: WaitingEntry, places: Mapping[GangKey, QueuePlace]) -> JsonObject:
        """Show a gang that waits as a whole, or a single pod: why, since when, for what."""
        pod, reason, place = entry.pod, entry.reason, places.get(entry.gang)
        asked = self._pods.workloads.first_asked(pod)
        now = self._clock.now()
        return {
            "pod": pod.display_name,
            "uid": pod.uid,
            "gang": str(entry.gang),
            **if_any("workload", pod.workload.reference if pod.workload else None),
            "wholeGang": not isinstance(entry, RefusedPod),
            "vc": pod.vc,
            "class": pod.charged_class,
            "user": pod.charged_user,
            "code": reason.code,
            "waitsFor": waits_for(reason.code),
            "reason": reason.text,
            "condition": lasting_text(reason),
            "change": reason.change,
            **if_any("limits", list(self._lacks(pod)) or None),
            "since": moment(entry.since),
            "asked": moment(asked),
            "ageSeconds": max(0, round(now.timestamp() - asked)),
            **self._show_place(place),
            **(self.show_start(place) if place is not None else {}),
            **self.show_reservation(entry.gang),
        }

    def show_why(self, gang: GangKey, *, viewer: str | None = None) -> JsonObject:
        """Show why a gang of the queue waits; a viewer is told no sentence, for it names others."""
        entry = self._waiting.gangs.get(gang)
        reason = explain(ReasonCode.UNPLANNED, gang=str(gang)) if entry is None else entry.reason
        shown = {"code": reason.code, "waitsFor": waits_for(reason.code)}
        return shown if viewer is not None else {**shown, "reason": reason.text}

    def explain_absence(self, gang: str, *, viewer: str | None = None) -> str:
        """Say why the queue has no gang of this name; a viewer is told of the own gangs."""
        for entry in self:
            if str(entry.gang) == gang and viewer in (None, entry.pod.charged_user):
                code, text = entry.reason.code, entry.reason.text
                why = text if viewer is None else f"it waits with code {code}"
                return f"gang {gang} has no place in the queue: {why}"
        own = "" if viewer is None else " of yours"
        hint = f"/v1/runs?gang={gang} shows its runs"
        return f"no gang {gang}{own} waits: it has its places, has ended or never existed; {hint}"

    def show_reservation(self, gang: GangKey, *, viewer: str | None = None) -> JsonObject:
        """Show what is reserved for a gang, as a field; empty if nothing is."""
        return show_reservation(self.reservation_of(gang), self.moves_for(gang), viewer=viewer)

    def _show_place(self, place: QueuePlace | None) -> JsonObject:
        if place is None:
            return {}
        listed = place.listed
        return {
            "queue": place.queue,
            "place": listed.place,
            "of": listed.length,
            "standing": show_standing(
                listed, self._queues(), awaits_quota=place.queue != CELLS_QUEUE
            ),
        }

    def show_start(self, place: QueuePlace, *, viewer: str | None = None) -> JsonObject:
        """Show when a gang that waits for cells is expected to start.

        A viewer who may read only the own gangs is told no names of others.
        """
        gang = place.listed.facts.gang
        if place.queue != CELLS_QUEUE:
            return {}
        entry = self._waiting.gangs.get(gang)
        if entry is not None and not may_start_unchanged(entry.reason.code):
            return {"expectedStart": {"unknown": _WITHOUT_CHANCE}}
        start = self.expected_start(gang)
        if start is None:
            return {}
        hidden = () if viewer is None else _OF_OTHERS
        return {"expectedStart": {key: told for key, told in start.items() if key not in hidden}}

    def _unplanned(self) -> Iterator[WaitingEntry]:
        """Find gangs whose pods the gate holds and that were told nothing yet."""
        seen: set[GangKey] = set()
        for pod in chain(self._pods, self._pods.helpers.pods.values()):
            if self._is_held(pod) and self._waiting.of_pod(pod) is None:
                entry = self._not_planned(pod)
                if entry.gang not in seen:
                    seen.add(entry.gang)
                    yield entry

    def _is_held(self, pod: ManagedPod) -> bool:
        return pod.is_gated and not self._has_place(pod.uid)

    def _not_planned(self, pod: ManagedPod) -> WaitingEntry:
        gang = single_gang(pod) if pod.is_charged_alone else pod.gang.key
        reason = explain(ReasonCode.UNPLANNED, gang=str(gang))
        since = datetime.fromtimestamp(pod.created, UTC)
        return WaitingEntry(gang=gang, pod=pod, reason=reason, since=since)
