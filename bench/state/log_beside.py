"""A process that writes the decision log at a steady rate, beside another benchmark.

`python -m bench.state.log_beside URL FOLDER SECONDS` prints a line when it begins, and its results
at the end.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import uvloop

from bench.report import Result
from bench.state import log
from state.database.database import open_database

OFFERED_PER_SECOND = 5000


class LogBeside:
    """The results of the log, once it has ended."""

    results: list[Result]


@asynccontextmanager
async def log_beside(url: str, folder: Path, *, seconds: float) -> AsyncIterator[LogBeside]:
    """Have the log written by another process while the body runs, and until it is done."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.state.log_beside", url, str(folder), str(seconds)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    beside = LogBeside()
    yield beside
    told = orjson.loads(await process.stdout.read())
    await process.wait()
    beside.results = [Result(**result) for result in told]


async def _write(url: str, folder: str, seconds: str) -> None:
    async with open_database(url, application_name="bench log") as database:
        results = await log.sustain(
            database,
            Path(folder),
            seconds=float(seconds),
            offered_per_second=OFFERED_PER_SECOND,
            on_begin=lambda: print("begins", flush=True),
        )
    told = [{"case": r.case, "metric": r.metric, "value": r.value} for r in results]
    print(orjson.dumps(told).decode())


if __name__ == "__main__":
    uvloop.run(_write(*sys.argv[1:]))
