"""Cellgate with two extenders, of which one leads: find the leader, and depose it."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.forwarder import Backend, Forwarder
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation, prepared

WAYS = ("kill", "pause", "stop")
"""How a leader can be deposed."""


@asynccontextmanager
async def two_extenders(
    plane: ControlPlane, *, components: Sequence[str] = ()
) -> AsyncIterator[Installation]:
    """Cellgate with two extenders, and a stand-in for the Service of their leader."""
    async with prepared(plane, extenders=2, serves_tls=True, components=components) as installation:
        backends = [
            Backend(port, f"{installation.url_of(replica)}/leader")
            for replica, port in enumerate(installation.extender_ports)
        ]
        async with Forwarder(backends, poll_seconds=0.1) as service:
            installation.scheduler_asks = f"https://127.0.0.1:{service.port}"
            await installation.install()
            yield installation


async def leader_of(cellgate: Installation, *, other_than: int | None = None) -> int:
    """Which extender leads, once one does."""

    async def found() -> int | None:
        leader = await cellgate.leader()
        return None if leader is None or leader == other_than else leader + 1

    numbered = await poll_until(found, deadline_seconds=20, explain=lambda: "no extender leads")
    assert numbered is not None
    return numbered - 1


async def depose(cellgate: Installation, way: str) -> float:
    """End the rule of the leader in one way; the seconds until another led. Both run afterwards."""
    leader = await leader_of(cellgate)
    process = cellgate.extenders[leader]
    began = time.monotonic()
    stopping = None
    match way:
        case "kill":
            process.kill()
        case "pause":
            process.pause()
        case _:
            stopping = asyncio.create_task(process.stop())
    await leader_of(cellgate, other_than=leader)
    seconds = time.monotonic() - began
    if way == "pause":
        process.resume()  # and it ends by itself, when it notices what it has missed
    await (stopping or process.wait(deadline_seconds=20))
    await cellgate.start_extender(leader)
    return seconds
