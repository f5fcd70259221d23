"""Windows and variants: what the largest shape that can start now costs, and the longest piece."""

import gc
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import Final

from bench.core.clusters import build_topology, node_names
from bench.core.engine import a_request, filled_engine
from bench.report import Result, percentile
from extender.cells.model import OPPORTUNISTIC
from extender.cells.views.listings import Stepwise
from extender.queue.gang_planner import GangPlanner
from extender.queue.model import QueuedPod
from extender.queue.ports import UnknownRunTimes
from extender.queue.queued_gang import QueuedGang
from extender.queue.variants.model import Options
from extender.queue.variants.search import VariantSearch
from extender.queue.variants.start_windows import WindowSearch
from extender.queue.variants.trials import Trials
from policy.submission import GangKey, LeafType, PodUid, VcName
from tests.support.queue.engine_cells import EngineCells
from tests.support.queue.unlimited_nodes import UnlimitedNodes

_NODES: Final = 5000
_MILLI: Final = 1_000_000
_GANGS: Final = {"16x8": (8,) * 16, "128x8": (8,) * 128}


class _NoCalls:
    longest_seconds = 45.0

    def is_open(self, uid: PodUid) -> bool:
        return False


def measure(*, is_quick: bool) -> list[Result]:
    """Time windows of a VC with room and of a full one, and variants of gangs that wait."""
    topology = build_topology(_NODES)
    engine = filled_engine(topology, _NODES)
    cells, nodes = EngineCells(engine, ()), UnlimitedNodes(node_names(_NODES))
    planner = GangPlanner(cells, nodes, _NoCalls())
    repeat = 20 if is_quick else 100
    gc.collect()
    gc.freeze()  # as a service does after recovery
    windows = WindowSearch(cells, nodes, planner.reservations.gaps, prepare=engine.prepare_stepwise)
    found: list[Result] = []
    for vc, priority in (("a", 0), ("full", 0), ("a", OPPORTUNISTIC)):
        pieces = [
            _pieces(
                windows.find(
                    vc=VcName(vc),
                    leaf_type=LeafType("A100"),
                    priority=priority,
                    topology=topology,
                    now=0.0,
                )
            )
            for _ in range(repeat)
        ]
        kind = "opportunistic" if priority == OPPORTUNISTIC else f"VC {vc}"
        found += _results({"windows": kind}, pieces)
    trials = Trials(
        cells,
        nodes,
        run_times=UnknownRunTimes(),
        seen=planner.seen,
        ranking=planner.ranking,
        reservations=planner.reservations,
        prepare=engine.prepare_stepwise,
    )
    for name in _GANGS:
        gang, options = _gang(name), Options(vcs=(VcName("a"),))
        search = VariantSearch(trials)
        pieces = [
            _pieces(search.find(gang, options, nullcontext)) for _ in range(max(3, repeat // 10))
        ]
        found += _results({"variants": name}, pieces)
    gc.unfreeze()
    return found


def _gang(name: str) -> QueuedGang:
    """A gang that waits, since its VC is full."""
    sizes = _GANGS[name]
    first = a_request(name, sizes, "full")
    gang = QueuedGang(GangKey("bench", name))
    for index in range(len(sizes)):
        request = replace(first, member=PodUid(f"{name}-{index}"))
        gang.put(QueuedPod(request=request, gang_size=len(sizes), is_gated=True))
    return gang


def _pieces(steps: Stepwise[object]) -> list[float]:
    """Run a search to its end; return the time of each piece."""
    found: list[float] = []
    is_over = False
    while not is_over:
        began = time.process_time_ns()
        try:
            next(steps)
        except StopIteration:
            is_over = True
        found.append((time.process_time_ns() - began) / _MILLI)
    return found


def _results(case: dict[str, int | str], pieces: list[list[float]]) -> list[Result]:
    totals, longest = [sum(one) for one in pieces], max(max(one) for one in pieces)
    case = {"nodes": _NODES, **case}
    return [
        Result(case=case, metric="total_p50_ms", value=percentile(totals, 50)),
        Result(case=case, metric="total_p99_ms", value=percentile(totals, 99)),
        Result(case=case, metric="longest_piece_ms", value=longest),
    ]
