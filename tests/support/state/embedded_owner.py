"""A process that owns an embedded PostgreSQL: `python -m tests.support.state.embedded_owner DIR`.

Prints `{"url": …, "pid": …}` when the server is up, and stops it when its standard input ends: so
the test can stop it, kill it, or end itself, and the server ends in each case.
"""

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from state.embedded import EmbeddedPostgres


async def main() -> None:
    """Own the server until standard input ends."""
    async with EmbeddedPostgres(Path(sys.argv[1])) as server:
        print(json.dumps({"url": server.url, "pid": server.pid}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    uvloop.run(main())  # as the services do
