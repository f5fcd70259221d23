"""The role of this replica: only the leader answers verbs and writes to pods.

A standby follows the cluster as the leader does, and decides nothing. When it takes over, it builds
the engine from the objects that it knows, and then answers. A leader that loses its leadership
ends; the process that Kubernetes starts in its place begins as a standby.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, Protocol

from aiohttp import web

from kube.api.client import KubeError
from kube.api.leadership import LeaderLabel
from policy.errors import BackendError
from service.clock import Clock
from service.http import json_answer

logger = logging.getLogger(__name__)

_RENEW_SECONDS: Final = 0.5
"""During recovery, of which one step may take two seconds."""
_SHOW_SECONDS: Final = 10.0
_SHOW_AGAIN_SECONDS: Final = 0.5
_CATCH_UP_SECONDS: Final = 2.0


class NotLeadingError(BackendError):
    """Another replica leads, or this one does not know which."""


class Election(Protocol):
    """How the leader is chosen: `kube.api.leadership`, or `SoleReplica`."""

    epoch: int
    holder: str
    """The replica that led when this one last asked; empty if none did."""

    @property
    def is_leading(self) -> bool:
        """Whether this replica leads at this moment."""

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """Wait until this replica leads; `on_wait` is called while another one does."""

    async def attempt(self) -> bool:
        """Renew leadership; False if another replica leads, or that is not known."""

    async def keep(self) -> None:
        """Renew leadership; return when it is lost."""

    async def resign(self) -> None:
        """Give leadership up."""


class SoleReplica:
    """The only replica, as in `cellgate run`: it always leads."""

    is_leading = True
    holder = ""

    def __init__(self, clock: Clock) -> None:
        self.epoch = int(clock.now().timestamp() * 1000)

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """Return at once: no other replica can lead."""

    async def attempt(self) -> bool:
        """Leadership cannot be lost."""
        return True

    async def keep(self) -> NoReturn:
        """Wait for as long as the process runs."""
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")

    async def resign(self) -> None:
        """Do nothing: no other replica can take over."""


class LeaderRole:
    """Leader or standby."""

    def __init__(self, election: Election, *, label: LeaderLabel | None = None) -> None:
        self._election = election
        self._label = label
        self._has_recovered = False

    @property
    def is_leading(self) -> bool:
        """Whether this replica leads now and has recovered; ask before every answer and write."""
        return self._has_recovered and self._election.is_leading

    @property
    def is_taking_over(self) -> bool:
        """Whether this replica was elected, and still builds its state."""
        return self._election.is_leading and not self._has_recovered

    @property
    def epoch(self) -> int:
        """The number of this leadership term."""
        return self._election.epoch

    @property
    def holder(self) -> str:
        """The replica that led when this one last asked; empty if none did."""
        return self._election.holder

    def check(self) -> None:
        """Raise NotLeadingError unless this replica leads at this moment."""
        if not self.is_leading:
            raise NotLeadingError("this replica does not lead; ask the leader")

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """Wait until this replica leads; `on_wait` is called while another one does."""
        await self._election.acquire(on_wait=on_wait)

    async def catch_up(self, reach: Callable[[str], Awaitable[None]]) -> None:
        """Wait until this replica has seen every pod that earlier leaders wrote, or raise.

        A watch may have ended unnoticed; leaf cells of pods that were bound since would be given
        out twice. `reach` waits until pods are known up to a resource version. If that takes too
        long, the process ends, and the one that is started in its place lists the pods anew.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                version = await self._label.claim(self.epoch) if self._label else None
                if version is not None:
                    await reach(version)
        except (KubeError, TimeoutError) as exc:
            raise NotLeadingError("the list of pods is not up to date") from exc

    async def recover(self, work: Awaitable[None]) -> None:
        """Do the work of recovery, and renew leadership meanwhile; then verbs may be answered.

        One step may take longer than leadership lasts without renewal. That is safe: nothing is
        answered or written to Kubernetes before the end, and leadership is confirmed first.
        """
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew())
            await work
            renewing.cancel()
        await self._confirm()
        self._has_recovered = True

    async def _renew(self) -> NoReturn:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            await self._confirm()

    async def _confirm(self) -> None:
        if not await self._election.attempt():
            raise NotLeadingError("leadership lost while recovering")

    async def keep(self) -> NoReturn:
        """Stay the leader for as long as possible, then raise NotLeadingError."""
        try:
            await self._election.keep()
        finally:
            await self._election.resign()
        raise NotLeadingError("leadership lost")

    async def show(self) -> None:
        """Keep the label that the Service selects on this replica's pod, while it leads.

        Runs beside `keep`, so that no renewal waits for it. It is repeated: without the label,
        kube-scheduler would reach no replica.
        """
        while self._label is not None:
            is_shown = self.is_leading and await self._try_to_show(self._label)
            await asyncio.sleep(_SHOW_SECONDS if is_shown else _SHOW_AGAIN_SECONDS)

    async def _try_to_show(self, label: LeaderLabel) -> bool:
        try:
            await label.move_here()
        except KubeError as exc:
            logger.warning("leader label not set", extra={"error": str(exc)})
            return False
        return True

    def add_to(self, app: web.Application) -> None:
        """Register `/leader`."""
        app.router.add_get("/leader", self._answer)

    async def _answer(self, _: web.Request) -> web.Response:
        answer = {"leader": self.is_leading, "epoch": self.epoch if self.is_leading else None}
        return json_answer(answer, status=200 if self.is_leading else 503)
