"""Leadership taken away under load: `python -m bench.controlplane.takeovers --times 50`.

Gangs are created and end all the time, more than fit at once. The leading extender is killed,
paused or stopped in turn. The program prints how long it took until another extender led, and
checks that every gang ran. If one did not, the logs of all processes and the last pods and Events
are kept in `build/takeovers`.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import orjson

from tests.controlplane.binaries import find_or_build
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import NodeShape
from tests.support.installed.gang_stream import GangStream
from tests.support.installed.gangs import own_pods
from tests.support.installed.leaders import WAYS, depose, two_extenders

NODES = 6
_EVIDENCE = Path("build/takeovers")


@asynccontextmanager
async def evidence_kept(plane: ControlPlane, pods: str) -> AsyncIterator[None]:
    """Keep what can tell why it failed, if it does."""
    try:
        yield
    except BaseException:
        plane.processes.collect_logs(_EVIDENCE)
        for path in (pods, pods.removesuffix("pods") + "events"):
            kept = _EVIDENCE / f"{path.rpartition('/')[2]}.json"
            kept.write_bytes(orjson.dumps(await plane.api.get(path)))
        print(f"logs, pods and Events are in {_EVIDENCE}", flush=True)
        raise


async def main(times: int) -> None:
    """Depose so many leaders under load, and tell how it went; fails with the first lost gang."""
    async with ControlPlane(find_or_build()) as plane:
        await plane.add_nodes(NODES, NodeShape(gpus=8))
        async with (
            two_extenders(plane) as cellgate,
            own_pods(plane) as path,
            evidence_kept(plane, path),
        ):
            stream = GangStream(plane, path)
            took: dict[str, list[float]] = {way: [] for way in WAYS}
            async with stream.flowing():
                for number in range(times):
                    way = WAYS[number % len(WAYS)]
                    took[way].append(await depose(cellgate, way))
                    print(f"{number + 1:3} {way:5} {took[way][-1]:5.2f} s", flush=True)
            for way, seconds in took.items():
                if seconds:
                    print(f"{way:5} p50 {median(seconds):.2f} s, longest {max(seconds):.2f} s")
            print(
                f"{times} take-overs, {stream.finished} gangs, each ran whole, the slowest after "
                f"{stream.longest_seconds:.1f} s; no leaf cell twice"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    sys.exit(asyncio.run(main(parser.parse_args().times)))
