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
from extender.cells.reason_kinds import waits_for
from extender.cells.wording import explain
from extender.feeds.pod_feed import PodSink
from extender.feeds.requests import single_gang
from extender.inspection.json_views import JsonObject, if_any
from extender.inspection.queue.queue_view import show_standing
from extender.inspection.queue.reservation_view import show_reservation
from extender.outcomes.waiting_list import RefusedPod, WaitingEntry, WaitingList
from extender.queue.order.listing import ListedGang, Ranked, list_gangs
from extender.queue.reserve.model import Reservation
from kube.read.managed_pod import ManagedPod
from policy.queues.queues import Queues
from policy.submission import GangKey, PodUid
from service.clock import Clock


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place of a gang in the order in which gangs are planned or charged."""

    queue: str
    listed: ListedGang


Order = Callable[[], Iterable[Ranked]]
CELLS_QUEUE: Final = "cells"
"""The queue of gangs that wait for cells."""
_OF_OTHERS: Final = ("after", "withoutHistory")
"""Fields of an expected start that name other gangs."""


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
        self.reservation_of: Callable[[GangKey], Reservation | None] = lambda _: None
        """Returns the reservation of a gang, or the last one that it had."""

    def __iter__(self) -> Iterator[WaitingEntry]:
        return chain(self._waiting, self._unplanned())

    def of_pod(self, pod: ManagedPod) -> WaitingEntry | None:
        """Return why a pod waits; None if it does not."""
        found = self._waiting.of_pod(pod)
        return found or (self._not_planned(pod) if self._is_held(pod) else None)

    def places(self) -> dict[GangKey, QueuePlace]:
        """Return the place of every gang that has one."""
        found: dict[GangKey, QueuePlace] = {}
        for queue, order in self._orders.items():
            for gang, listed in list_gangs(order()).items():
                found[gang] = QueuePlace(queue, listed)
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
            "since": entry.since.isoformat(timespec="seconds"),
            "asked": datetime.fromtimestamp(asked, UTC).isoformat(timespec="seconds"),
            "ageSeconds": max(0, round(now.timestamp() - asked)),
            **self._show_place(place),
            **(self.show_start(place) if place is not None else {}),
            **self.show_reservation(entry.gang),
        }

    def show_reservation(self, gang: GangKey, *, viewer: str | None = None) -> JsonObject:
        """Show what is reserved for a gang, as a field; empty if nothing is."""
        return show_reservation(self.reservation_of(gang), viewer=viewer)

    def _show_place(self, place: QueuePlace | None) -> JsonObject:
        if place is None:
            return {}
        listed = place.listed
        return {
            "queue": place.queue,
            "place": listed.place,
            "of": listed.length,
            "standing": show_standing(listed, self._queues()),
        }

    def show_start(self, place: QueuePlace, *, viewer: str | None = None) -> JsonObject:
        """Show when a gang that waits for cells is expected to start.

        A viewer who may read only the own gangs is told no names of others.
        """
        gang = place.listed.facts.gang
        start = self.expected_start(gang) if place.queue == CELLS_QUEUE else None
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
