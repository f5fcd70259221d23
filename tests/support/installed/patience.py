"""Requests to an API server that is killed, paused and restarted meanwhile."""

from collections.abc import Awaitable, Callable

import aiohttp

from tests.controlplane.api import ApiError
from tests.controlplane.waiting import poll_until

_PATIENCE_SECONDS = 90.0


async def do_once(act: Callable[[], Awaitable[object]]) -> None:
    """Do something until it is done: it may have been done although the answer was lost."""

    async def is_done() -> bool:
        try:
            await act()
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        return True

    await wait_patiently(is_done, "the API server does not do it")


async def wait_patiently(ask: Callable[[], Awaitable[bool]], why: str) -> None:
    """Ask until the answer is true; a failed request is no answer."""

    async def asked() -> bool:
        try:
            return await ask()
        except (aiohttp.ClientError, TimeoutError, ApiError):  # one that starts forbids everything
            return False

    await poll_until(asked, deadline_seconds=_PATIENCE_SECONDS, explain=lambda: why)
