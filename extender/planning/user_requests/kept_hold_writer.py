"""Writes on pods that they have the hold of an earlier pod, so that an admin can lift it there."""

import asyncio
import logging
from dataclasses import replace
from typing import Final, NoReturn

from extender.planning.user_requests.user_holds import UserHolds
from kube import marks
from kube.api.binder import PodRef
from kube.api.pod_writer import PodMarker
from policy.errors import BackendError
from policy.queues.holds import format_hold, format_holder
from service.tasks import wait_up_to

logger = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 2.0


class KeptHoldWriter:
    """Writes for as long as this replica leads."""

    def __init__(self, holds: UserHolds, *, marker: PodMarker) -> None:
        self._holds = holds
        self._marker = marker
        self._news = asyncio.Event()
        holds.kept.on_given.append(self._news.set)

    async def run(self) -> NoReturn:
        """Write holds as soon as pods have them, until cancelled."""
        while True:
            await wait_up_to(_EVERY_SECONDS, self._news)
            self._news.clear()
            await self.update()

    async def update(self) -> None:
        """Write the holds that pods have and do not state yet."""
        for pod, hold in self._holds.unwritten():
            told = {
                marks.HOLD_ANNOTATION: format_hold(hold.hold),
                marks.HELD_BY_ANNOTATION: format_holder(replace(hold.holder, since=hold.since)),
            }
            try:
                await self._marker.mark_all(PodRef.of(pod), told)
            except BackendError as exc:
                logger.warning("hold not written, will retry", extra={"error": str(exc)})
                return
