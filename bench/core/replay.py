"""A log of a busy cluster, decided again from an exported file, as `cellgate replay --file` does.

A large cluster is kept nearly full: gangs of one pod to sixteen nodes ask, wait, preempt, run and
end, and nodes fail. The log is written to a file as it is made.
"""

import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

from bench.core import busy_clusters
from bench.report import SEED, Result
from cli.log.progress import Progress
from cli.log.sources import FileRows
from extender.cells.model import OPPORTUNISTIC, MemberRequest, Place, PlacedMember, Preempt
from extender.cluster.cluster import Cluster
from extender.cluster.journal import SERVICE, DecisionContext, LogJournal
from extender.cluster.replay import Report, replay_rows
from policy.submission import GangKey, NodeName, PodUid, VcName
from service.clock import Clock
from service.garbage import settle_collector
from state.log.archive.lines import Header
from state.log.archive.reader import Archive
from state.log.archive.writer import ArchiveWriter, open_writer
from state.log.log import DecisionLog, LogSettings
from state.log.records import DecisionRecord, RowKind
from state.log.stretches import EpochStretch, Wanted
from tests.support.twins.log import MemoryDecisions

_EPOCH: Final = 1
_SHAPES: Final = ((1,), (2,), (8,), (4, 4), (8,) * 4, (8,) * 16)
_WEIGHTS: Final = (30, 20, 30, 10, 8, 2)
_FULL: Final = 0.89
_NODE_CHANGES: Final = 0.002
"""Nodes that fail or come back, for each gang that asks."""
_FLUSH_EVERY: Final = 5000
_OFFERED: Final = 500


def measure(*, is_quick: bool) -> list[Result]:
    """Time the replay of a short and of a long log."""
    results: list[Result] = []
    sizes = (400, 3000) if is_quick else (10_000, 100_000)
    for size, decisions in zip(("short", "long"), sizes, strict=True):
        with tempfile.TemporaryDirectory(prefix="cellgate-bench-") as folder:
            results += asyncio.run(_measure(Path(folder) / "log", size, decisions))
    return results


async def _measure(path: Path, size: str, decisions: int) -> list[Result]:
    load = _Load(path)
    deciding = await load.play(decisions)
    settle_collector()  # as the command does
    began, began_cpu = time.perf_counter(), time.process_time()
    reports = await _replay(path)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    done, rows = sum(one.decisions for one in reports), sum(one.rows for one in reports)
    unlike = sum(one.different + one.missing_rows for one in reports)
    values = {
        "rows": rows,
        "replay_s": seconds,
        "replay_cpu_s": cpu,
        "row_bytes": load.size / rows,
        "not_repeated": unlike + (done < decisions),
    }
    case: dict[str, int | str] = {"log": size, "decisions": decisions}
    results = [Result(case=case, metric=name, value=value) for name, value in values.items()]
    # What making the log cost, as a measure of what repeating it may cost.
    for what, spent in (("replayed", cpu), ("made", deciding)):
        value = spent / done * 1e6
        results.append(Result(case={**case, "was": what}, metric="decision_us", value=value))
    return results


async def _replay(path: Path) -> Sequence[Report]:
    source = FileRows(Archive(path), Progress())
    return [
        await replay_rows(source.rows(one), epoch=one.epoch)
        for one in await source.epochs(Wanted())
    ]


class _ToFile(MemoryDecisions):
    """A log that is written to a file at once: what it has is not kept in memory."""

    def __init__(self, writer: ArchiveWriter) -> None:
        super().__init__()
        self._writer = writer

    async def insert(self, records: Sequence[DecisionRecord]) -> list[DecisionRecord]:
        """Write rows to the file."""
        for record in records:
            self._writer.append(record)
        return []


class _Load:
    """A busy cluster that writes its log to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._random = Random(SEED)
        self._nodes = [busy_clusters.node(index) for index in range(busy_clusters.NODES)]
        self._names: dict[NodeName, None] = dict.fromkeys(one.name for one in self._nodes)
        self._running: deque[list[PodUid]] = deque()
        self._used = 0
        self._gangs = 0
        self._now = 0.0

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self._path.stat().st_size

    async def play(self, decisions: int) -> float:
        """Make a log with so many decisions; return the CPU seconds without those of writing."""
        seconds = 0.0
        stretch = EpochStretch(epoch=_EPOCH, first=1, last=2**62, began_at=datetime.now(UTC))
        with open_writer(self._path) as writer:
            writer.begin(Header(service=SERVICE, epochs=(stretch,)))
            log = DecisionLog(_ToFile(writer), LogSettings(batch_size=_FLUSH_EVERY))
            began = time.process_time()
            self._start(LogJournal(log, epoch=_EPOCH, clock=Clock()))
            self._asked = 0
            while self._asked < decisions:
                self._step()
                if log.pending >= _FLUSH_EVERY:
                    seconds += time.process_time() - began
                    await log.flush()
                    began = time.process_time()
            seconds += time.process_time() - began
            await log.flush()
        return seconds

    def _start(self, journal: LogJournal) -> None:
        self._cluster = Cluster(lease_seconds=3600, journal=journal)
        for node in self._nodes:
            self._cluster.observe_node(node)
        self._cluster.use_document(busy_clusters.document(share=9))

    def _step(self) -> None:
        """A gang asks; the oldest gangs end when the cluster is full; now and then a node fails."""
        self._now += 1.0
        if not self._ask() and self._running:
            self._end(self._running.popleft())
        while self._used > _FULL * busy_clusters.NODES * 8:
            self._end(self._running.popleft())
        if self._random.random() < _NODE_CHANGES:
            index = self._random.randrange(len(self._nodes))
            node = self._nodes[index]
            self._nodes[index] = replace(node, is_healthy=not node.is_healthy)
            self._cluster.observe_node(self._nodes[index])

    def _ask(self) -> bool:
        """A gang asks for places, one member after the other; whether all got one."""
        (sizes,) = self._random.choices(_SHAPES, _WEIGHTS)
        self._gangs += 1
        whole = MemberRequest(
            member=PodUid(""),
            gang=GangKey("lab", f"gang-{self._gangs}"),
            leaf_count=0,
            gang_leaf_counts=sizes,
            vc=VcName(self._random.choice("ab")),
            priority=self._random.choices((OPPORTUNISTIC, 0, 5), (2, 9, 9))[0],
        )
        placed: list[PodUid] = []
        for index, size in enumerate(sizes):
            uid = PodUid(f"{self._gangs:08x}-1c2d-4e5f-8a9b-{index:012x}")
            if not self._place(replace(whole, member=uid, leaf_count=size)):
                break
            placed.append(uid)
        if placed:
            self._running.append(placed)
        return len(placed) == len(sizes)

    def _place(self, request: MemberRequest) -> bool:
        names = self._names
        if self._random.random() < 0.1:  # a pod that was never gated: kube-scheduler offers some
            names = dict.fromkeys(self._random.sample([*names], _OFFERED))
        context = DecisionContext(
            kind=RowKind.PLACEMENT, now=self._now, applies_preemption=True, pod="lab/pod"
        )
        decision = self._cluster.decide(request, candidate_nodes=names, context=context)
        self._asked += 1
        if isinstance(decision, Preempt):
            for gang in decision.victims:
                self._forget(self._cluster.members.of_gang(gang))
            decision = self._cluster.decide(request, candidate_nodes=names, context=context)
            self._asked += 1
        if not isinstance(decision, Place):
            return False
        self._used += request.leaf_count
        bound = PlacedMember(request=request, placement=decision.placement)
        self._cluster.observe_bound(bound)
        return True

    def _end(self, members: Sequence[PodUid]) -> None:
        self._forget([uid for uid in members if self._cluster.has_place(uid)])

    def _forget(self, members: Sequence[PodUid]) -> None:
        for uid in members:
            member = self._cluster.members.get(uid)
            if member is not None:
                self._used -= member.request.leaf_count
            self._cluster.forget_member(uid)
