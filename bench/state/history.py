"""The history of runs: what a gang's life costs the extender's loop, and what Postgres takes.

The loop notes what each pod says, and describes runs that changed; both are measured for a whole
life: created, bound, running, succeeded. Postgres is a server of its own in a temporary directory.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.report import Result
from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from extender.history.run_facts import build_facts, stamp_of
from extender.history.seen_pods import seen_by
from extender.runs.run_book import RunBook
from kube import marks
from kube.read.pods import read_pod
from state.database.database import open_database
from state.database.migrator import migrate
from state.history.facts import GangFacts
from state.log.postgres import PostgresDecisions
from state.log.records import DecisionRecord, RowKind
from tests.support.extender.group_sizes import GroupSizes

_SIZES = (1, 8, 128)
_BATCH = 500
_START = datetime(2026, 3, 1, tzinfo=UTC)


def measure(*, is_quick: bool) -> list[Result]:
    """Measure the loop, and then Postgres."""
    results = [one for size in _SIZES for one in _measure_loop(size, 20 if is_quick else 100)]
    with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as folder:
        directory = Path(folder)
        directory.chmod(0o755)  # an embedded server may run as another user
        gangs = 500 if is_quick else 5000
        results.append(asyncio.run(_measure_database(directory, gangs)))
    return results


def _measure_loop(size: int, gangs: int) -> Iterator[Result]:
    book = RunBook()
    to_seen = seen_by(Cluster(lease_seconds=1.0, journal=NoJournal()), GroupSizes())
    read = partial(read_pod, namespace_labels={})
    noted = described = longest = 0.0
    for gang in range(gangs):
        for step in range(4):
            pods = [_pod(gang, index, size=size, step=step) for index in range(size)]
            for obj in pods:
                pod = read(obj)
                assert pod is not None
                began = time.process_time()
                book.see(to_seen(pod, obj), now=_START.timestamp() + step)
                noted += time.process_time() - began
            while True:
                began = time.process_time()
                is_more = bool(_describe(book))
                took = time.process_time() - began
                described, longest = described + took, max(longest, took)
                if not is_more:
                    break
    case: dict[str, int | str] = {"members": size}
    pods_seen = gangs * size * 4
    yield Result(case=case, metric="note_us_per_event", value=noted / pods_seen * 1e6)
    yield Result(case=case, metric="describe_us_per_life", value=described / gangs * 1e6)
    yield Result(case=case, metric="describe_longest_ms", value=longest * 1e3)


def _describe(book: RunBook) -> list[GangFacts]:
    stamp = stamp_of(1, _START)
    return [build_facts(run, pods, stamp=stamp) for run, pods in book.take_changed(100)]


async def _measure_database(directory: Path, gangs: int) -> Result:
    """Write the three descriptions of each gang, as many rows at once as the log does."""
    records = list(_records(gangs))
    url = f"embedded:{directory / 'data'}"
    async with open_database(url, application_name="bench") as database:
        await migrate(database.pool)
        store = PostgresDecisions(database.pool)
        began = time.perf_counter()
        for first in range(0, len(records), _BATCH):
            await store.insert(records[first : first + _BATCH])
        seconds = time.perf_counter() - began
        stored = await database.pool.fetchval("SELECT count(*) FROM gang_history")
        assert stored == gangs
    return Result(case={"members": 2}, metric="postgres_ms_per_life", value=seconds / gangs * 1e3)


def _records(gangs: int) -> Iterator[DecisionRecord]:
    to_seen = seen_by(Cluster(lease_seconds=1.0, journal=NoJournal()), GroupSizes())
    for gang in range(gangs):
        book = RunBook()
        for step in (0, 1, 3):
            for obj in (_pod(gang, index, size=2, step=step) for index in range(2)):
                pod = read_pod(obj)
                assert pod is not None
                book.see(to_seen(pod, obj), now=_START.timestamp() + step)
            [(run, pods)] = book.take_changed(1)
            facts = build_facts(run, pods, stamp=f"{step}")
            yield DecisionRecord(
                at=_START,
                service="extender",
                kind=RowKind.RUN,
                subject=facts.gang,
                outcome=facts.outcome or "running",
                reason="",
                latency_seconds=0.0,
                facts=facts,
            )


def _pod(gang: int, index: int, *, size: int, step: int) -> dict[str, Any]:
    """A member that is created, bound, running or has succeeded."""
    time_of = "2026-03-01T00:00:{:02}Z".format
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": time_of(1)}
    state = {1: {}, 2: {"running": {"startedAt": time_of(2)}}}.get(
        step, {"terminated": {"startedAt": time_of(2), "finishedAt": time_of(3), "exitCode": 0}}
    )
    name = f"gang{gang}-{index}"
    labels = {marks.GANG_LABEL: f"gang{gang}", marks.GANG_SIZE_LABEL: str(size), "team": "x"}
    status = {
        "phase": ("Pending", "Pending", "Running", "Succeeded")[step],
        **({"conditions": [scheduled]} if step else {}),
        **({"containerStatuses": [{"name": "main", "state": state}]} if step > 1 else {}),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "creationTimestamp": time_of(0),
            "labels": labels,
            "annotations": {marks.SUBMITTER_ANNOTATION: "alice", marks.DECISION_ANNOTATION: "d"},
        },
        "spec": {
            **({"nodeName": f"node-{index}"} if step else {}),
            "containers": [
                {
                    "name": "main",
                    "image": "train:1",
                    "resources": {"limits": {"nvidia.com/gpu": "8"}},
                }
            ],
        },
        "status": status,
    }
