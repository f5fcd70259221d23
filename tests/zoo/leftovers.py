"""What is left after every workload has gone: it should be nothing."""

import asyncio
import time
from typing import Final

import aiohttp
import asyncpg

from tests.support.installed.installation import Installation

_DEADLINE_SECONDS: Final = 45.0
"""The leader compares charges with pods every fifteen seconds."""
_PATHS: Final = ("/v1/gangs", "/v1/leases", "/v1/waiting")
_CHARGES: Final = "SELECT namespace, gang, leaf_count FROM charges"
_HOLDINGS: Final = "SELECT user_name, group_name, leaf_count FROM holdings WHERE leaf_count <> 0"


async def find_leftovers(cellgate: Installation) -> list[str]:
    """Wait until nothing is left, and say what is, if something stays."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while left := await _look(cellgate):
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(1)
    return left


async def _look(cellgate: Installation) -> list[str]:
    left = []
    for path in _PATHS:
        try:
            items = (await cellgate.inspect(path))["items"]
        except (aiohttp.ClientError, TimeoutError) as error:
            left.append(f"{path} is not answered: {error!r}")
        else:
            left += [f"{path} still has {item}" for item in items]
    connection = await asyncpg.connect(cellgate.database_url)
    try:
        for what, query in (("charge", _CHARGES), ("holding", _HOLDINGS)):
            left += [f"{what} {dict(row)}" for row in await connection.fetch(query)]
    finally:
        await connection.close()
    return left
