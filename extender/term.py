"""Whether this replica leads: only then are verbs answered and pods touched.

A standby follows the cluster like a leader does, and decides nothing. When it takes over it builds
the engine from what it knows and answers from then on. A leader that loses its leadership ends: the
process that is started in its place is a standby that knows nothing wrong.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, Protocol

from aiohttp import web

from kube.api.client import KubeError
from kube.api.leader_label import LeaderLabel
from policy.errors import BackendError
from service.clock import Clock
from service.http import json_answer

logger = logging.getLogger(__name__)

_RENEW_SECONDS: Final = 0.5
"""While recovering: often enough that a piece of that work which takes two seconds does no harm."""
_SHOW_SECONDS: Final = 10.0
_SHOW_AGAIN_SECONDS: Final = 0.5
_CATCH_UP_SECONDS: Final = 2.0


class NotLeadingError(BackendError):
    """Somebody else leads, or we cannot tell."""


class Term(Protocol):
    """A term of leadership: `kube.api.leadership`, or that of a process that has no rival."""

    epoch: int

    @property
    def is_leading(self) -> bool:
        """Whether we lead at this very moment."""

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """Wait until we lead; `on_wait` is called when somebody else does."""

    async def attempt(self) -> bool:
        """Renew; False if somebody else leads or we cannot tell."""

    async def keep(self) -> None:
        """Return when we do not lead any more."""

    async def resign(self) -> None:
        """Give leadership back."""


class NoRivals:
    """The term of a process that is alone, as in `cellgate run`."""

    is_leading = True

    def __init__(self, clock: Clock) -> None:
        self.epoch = int(clock.now().timestamp() * 1000)

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """There is nobody to wait for."""

    async def attempt(self) -> bool:
        """There is nobody else."""
        return True

    async def keep(self) -> NoReturn:
        """It lasts as long as the process."""
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def resign(self) -> None:
        """There is nobody to take over."""


class Leading:
    """Our place among the replicas."""

    def __init__(self, term: Term, *, label: LeaderLabel | None = None) -> None:
        self._term = term
        self._label = label
        self._has_recovered = False

    @property
    def is_leading(self) -> bool:
        """Whether we lead at this very moment and know everything; ask it before every act."""
        return self._has_recovered and self._term.is_leading

    @property
    def epoch(self) -> int:
        """The number of our term."""
        return self._term.epoch

    def check(self) -> None:
        """Raise NotLeadingError unless we lead at this very moment."""
        if not self.is_leading:
            raise NotLeadingError("this replica does not lead; ask the leader")

    async def acquire(self, *, on_wait: Callable[[], None]) -> None:
        """Wait until we lead; `on_wait` is called when somebody else does."""
        await self._term.acquire(on_wait=on_wait)

    async def catch_up(self, reach: Callable[[str], Awaitable[None]]) -> None:
        """Wait until we have seen all that leaders before us have written, or raise.

        A watch may have died without a word: what was bound since would be given away again.
        `reach` waits until pods are known up to a resource version. A process in which they are
        not, after seconds, is of no use as a leader; the one that is started in its place lists
        them anew.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_SECONDS):
                version = await self._label.claim(self.epoch) if self._label else None
                if version is not None:
                    await reach(version)
        except (KubeError, TimeoutError) as exc:
            raise NotLeadingError("pods are not known as they are now") from exc

    async def recover(self, work: Awaitable[None]) -> None:
        """Do the work after which we know everything, and may answer verbs; renew meanwhile.

        A piece of it may take longer than a term lasts without renewal. Nothing is answered or
        written to Kubernetes before the end, and if nobody has taken over, it is still ours.
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
        if not await self._term.attempt():
            raise NotLeadingError("leadership lost while recovering")

    async def keep(self) -> NoReturn:
        """Stay the leader, then raise NotLeadingError."""
        try:
            await self._term.keep()
        finally:
            await self._term.resign()
        raise NotLeadingError("leadership lost")

    async def show(self) -> None:
        """Let the Service find us for as long as we lead, and nobody else.

        Beside `keep`: no renewal waits for it. A label that could not be set, or that somebody took
        away, would keep kube-scheduler from every leader but the next.
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
