"""Waiting for a control plane to come up, and telling why it does not."""

import asyncio

import aiohttp

from tests.controlplane.api import Api, ApiError
from tests.controlplane.group import ProcessGroup
from tests.controlplane.waiting import poll_until

_DEADLINE_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PROBE_SECONDS = 2.0
_PORT_TAKEN = "address already in use"


class StartError(Exception):
    """A component ended or did not get ready; the message carries the end of its log."""


class PortTakenError(StartError):
    """Another process took a port between choosing and using it: other ports may do."""


async def wait_until_found(path: str, api: Api, processes: ProcessGroup) -> None:
    """Return when the API server has something at that path; StartError if it never will."""

    async def is_found() -> bool:
        check_all_run(processes)
        try:
            # A process that took our port may accept the connection and never answer.
            async with asyncio.timeout(_PROBE_SECONDS):
                return await api.exists(path)
        except (ApiError, aiohttp.ClientError, TimeoutError):
            return False

    def explain() -> str:
        tails = [f"--- {name}\n{tail}" for name, tail in processes.log_tails(10).items()]
        return "\n".join([f"{path} is not ready", *tails])

    try:
        await poll_until(
            is_found,
            deadline_seconds=_DEADLINE_SECONDS,
            poll_seconds=_POLL_SECONDS,
            explain=explain,
        )
    except TimeoutError as error:
        raise StartError(str(error)) from error


def check_all_run(processes: ProcessGroup) -> None:
    """Raise StartError for the first process that has ended."""
    for process in processes:
        if not process.is_running():
            tail = process.tail(20)
            error = PortTakenError if _PORT_TAKEN in tail else StartError
            raise error(f"{process.name} ended with code {process.returncode}\n{tail}")
