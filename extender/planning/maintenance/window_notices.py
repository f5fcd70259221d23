"""Tells owners beforehand that their gangs run on nodes that will be in maintenance.

From `notice` before a window begins, each gang that may still run then gets an Event, once; a gang
that runs when it begins gets another one. Cellgate ends none of them.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from extender.cells.views.listings import Stepwise
from extender.feeds.pod_feed import PodSink
from extender.outcomes.pod_events import PodEvents
from extender.planning.maintenance.concerned_gangs import ConcernedGang
from policy.queues.windows import MaintenanceWindow, next_boundary
from policy.submission import GangKey
from policy.wording import listing, moment
from service.clock import Clock
from service.tasks import in_slices, wait_up_to

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 10.0
"""Expected ends change with time, so that it is looked at them again and again."""

Concerned = Callable[[MaintenanceWindow], list[ConcernedGang]]
_Told = tuple[str, float, GangKey, bool]


class WindowNotices:
    """Names the gangs that windows concern, for as long as this replica leads."""

    def __init__(
        self,
        *,
        windows: Callable[[], tuple[MaintenanceWindow, ...]],
        concerned: Concerned,
        pods: PodSink,
        events: PodEvents,
        clock: Clock,
    ) -> None:
        self._windows = windows
        self._concerned = concerned
        self._pods = pods
        self._events = events
        self._clock = clock
        self._told: set[_Told] = set()
        self._news = asyncio.Event()

    async def run(self) -> NoReturn:
        """Look at the windows until cancelled."""
        while True:
            await in_slices(self.tell())
            await wait_up_to(self._seconds_to_next(), self._news)
            self._news.clear()

    def note_change(self) -> None:
        """Look at the windows soon: the document has changed."""
        self._news.set()

    def _seconds_to_next(self) -> float:
        """Return how long there is nothing to do: a window may begin, or its notice, before."""
        now = self._clock.now().timestamp()
        times = (time for one in self._windows() for time in (one.begins - one.notice, one.begins))
        due = next_boundary(times, now=now)
        return _EVERY_SECONDS if due is None else min(_EVERY_SECONDS, due - now)

    def tell(self) -> Stepwise[None]:
        """Tell the owners of gangs that a window concerns and that were not told yet."""
        now, windows = self._clock.now().timestamp(), self._windows()
        for window in windows:
            if window.begins - window.notice <= now < window.ends:
                for one in self._concerned(window):
                    self._tell_one(window, one, has_begun=now >= window.begins)
                yield
        current = {(window.name, window.begins) for window in windows if now < window.ends}
        self._told = {told for told in self._told if told[:2] in current}

    def _tell_one(self, window: MaintenanceWindow, one: ConcernedGang, *, has_begun: bool) -> None:
        key = window.name, window.begins, one.gang, has_begun
        if key in self._told or not (has_begun or one.is_expected_at(window.begins)):
            return
        self._told.add(key)
        why = concerned_sentence(window, one, has_begun=has_begun)
        logger.info("maintenance concerns a gang", extra={"gang": str(one.gang), "why": why})
        pod = self._pods.get(one.member)
        if pod is not None:
            self._events.maintenance(pod, why, has_begun=has_begun)


def concerned_sentence(window: MaintenanceWindow, one: ConcernedGang, *, has_begun: bool) -> str:
    """Say what a window means for a gang that runs on its nodes."""
    nodes = f"{'nodes' if len(one.nodes) > 1 else 'node'} {listing(one.nodes)}"
    about = f" ({window.reason})" if window.reason else ""
    when = f"from {moment(window.begins)} until {moment(window.ends)}{about}"
    if has_begun:
        return (
            f"gang {one.gang} runs on {nodes}, in maintenance window {window.name} {when}; "
            "Cellgate does not end it, but the admins of the nodes may"
        )
    end = one.expected_end
    ends = "when it ends is not known" if end is None else "its end is expected later"
    return (
        f"gang {one.gang} runs on {nodes}, which will be in maintenance window {window.name} "
        f"{when}; {ends}: save its work before, or end it and let it start elsewhere"
    )
