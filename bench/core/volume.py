"""What the decision log of the extender grows by, for each gang that comes and goes.

A planner leads: gangs of one pod to sixteen nodes ask, wait, preempt, run and end, and the order
follows recent use. Bytes are those of rows as the services keep them in memory and in the spool.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from bench.report import SEED, Result
from extender.cluster.journal import SERVICE
from state.log import codec
from state.log.archive.lines import Header
from state.log.archive.writer import ArchiveWriter, open_writer
from state.log.records import DecisionRecord, RowKind
from state.log.stretches import EpochStretch
from tests.support.policy.cluster_texts import derived_text
from tests.support.queue.logged_world import Asked, LoggedWorld
from tests.support.twins.log import MemoryDecisions

_QUEUES: Final = """apiVersion: cellgate.io/v1
kind: Queues
levels: [{name: all, strategy: priority, worth: {class: 24h, fairShare: 48h, shortRun: 24h}}]
runTime: {longest: {default: 24h}}
"""
_SHAPES: Final = ((1,), (2,), (8,), (4, 4), (8,) * 4, (8,) * 16)
_WEIGHTS: Final = (30, 20, 30, 10, 8, 2)
_CLASSES: Final = (("normal", "spare", "urgent"), (8, 1, 1))
_USERS: Final = 60
_RUNS: Final = 9.2, 0.9
"""Of the logarithm of a run time in seconds: mean, and deviation."""
_QUEUE: Final = (RowKind.ORDERING, RowKind.RESERVATION, RowKind.RELEASE)
_LEAF_SECONDS: Final = 8.2 * 15_000.0
"""That a gang uses on average, about."""
_REFRESH_EVERY: Final = 5.0


def measure(*, is_quick: bool) -> list[Result]:
    """Count the rows and bytes of a busy cluster's log."""
    nodes, gangs = (50, 150) if is_quick else (500, 2000)
    with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as folder:
        return _measure(Path(folder) / "log", nodes, gangs)


def _measure(path: Path, nodes: int, gangs: int) -> list[Result]:
    with open_writer(path) as writer:
        stretch = EpochStretch(epoch=1, first=1, last=2**62, began_at=datetime.now(UTC))
        writer.begin(Header(service=SERVICE, epochs=(stretch,)))
        counts = _Counts(writer)
        asyncio.run(_play(counts, nodes=nodes, gangs=gangs))
    case: dict[str, int | str] = {"nodes": nodes, "gangs": gangs}
    results = [
        Result(case={**case, "rows": kind}, metric=metric, value=value / gangs)
        for kind in sorted(counts.rows)
        for metric, value in (
            ("rows_per_gang", counts.rows[kind]),
            ("bytes_per_gang", counts.sizes[kind]),
        )
    ]
    whole = {**case, "rows": "all"}
    size = sum(counts.sizes.values())
    of_queue = sum(counts.sizes[kind] for kind in _QUEUE) / size
    return [
        *results,
        Result(case=whole, metric="bytes_per_gang", value=size / gangs),
        Result(case=whole, metric="file_bytes_per_gang", value=path.stat().st_size / gangs),
        Result(case=whole, metric="share_of_queue", value=of_queue),
    ]


class _Counts(MemoryDecisions):
    """A log of which only the size is kept."""

    def __init__(self, writer: ArchiveWriter) -> None:
        super().__init__()
        self._writer = writer
        self.rows: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Count rows, and write them to a file."""
        for record in records:
            self.rows[record.kind] += 1
            self.sizes[record.kind] += len(codec.encode(record))
            self._writer.append(record)
        return []


async def _play(store: MemoryDecisions, *, nodes: int, gangs: int) -> None:
    """Let gangs come about as fast as the cluster can run them."""
    text = derived_text(a=nodes // 2, b=nodes // 2)
    world = LoggedWorld(text, _QUEUES, nodes=nodes, nodes_per_rack=16, store=store)
    random, between = Random(SEED), _LEAF_SECONDS / (8 * nodes)
    refresh_at = world.now
    for number in range(gangs):
        world.submit(_a_gang(random, number))
        world.advance(between, every=between)
        if world.now >= refresh_at:
            refresh_at = world.now + _REFRESH_EVERY
            world.refresh()
        await world.log.flush()


def _a_gang(random: Random, number: int) -> Asked:
    runs = min(random.lognormvariate(*_RUNS), 86_400.0)
    return Asked(
        name=f"gang-{number}",
        sizes=random.choices(_SHAPES, _WEIGHTS)[0],
        vc=random.choice("ab"),
        class_name=random.choices(*_CLASSES)[0],
        user=f"user-{random.randrange(_USERS)}",
        runs=runs,
        expected=runs * random.uniform(0.5, 2.0),
        limit=86_400.0,
    )
