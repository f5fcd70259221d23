"""The engine alone: plan + apply of gangs on a cluster that is mostly full, building, recovery.

Times are CPU time: the engine waits for nothing, and a machine that others use too would make the
99th percentile theirs.
"""

import gc
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from bench.core.clusters import LEAVES, build_topology, node_names
from bench.core.spread import measure_spread
from bench.report import SEED, Result, percentile
from extender.cells.engine import Engine
from extender.cells.model import (
    Decision,
    MemberRequest,
    NodeCell,
    Place,
    PlacedMember,
    Preempt,
    Wait,
)
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid, VcName
from policy.topology import CellTypeName, Topology

_FILLED = 0.85
_SHAPES = {"1x1": (1,), "1x8": (8,), "4x8": (8,) * 4, "16x8": (8,) * 16}
_KINDS: dict[str, type[Decision]] = {"place": Place, "wait": Wait, "preempt": Preempt}
_OPEN_NODES = 5000
_NANOSECONDS_PER_MICROSECOND = 1000


def measure(*, is_quick: bool) -> list[Result]:
    """Time decisions on clusters of growing size."""
    sizes = (1000, 10_000) if is_quick else (100, 1000, 10_000)
    repeat = 1000 if is_quick else 3000
    results: list[Result] = []
    for nodes in sizes:
        results += _measure_size(nodes, repeat)
    results += _measure_candidates(repeat // 10)
    results += measure_spread(gangs=20 if is_quick else 60)
    return results


def _measure_candidates(repeat: int) -> Iterator[Result]:
    """Without a topology: all nodes are offered, or only those of the second half."""
    engine, names = Engine(lease_seconds=3600), node_names(_OPEN_NODES)
    for name in names:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))
    for name in Random(SEED).sample(names, int(_OPEN_NODES * _FILLED)):
        observe_gang(engine, name, "a", 0, LEAVES)
    for offered, nodes in (("all", names), ("half", names[_OPEN_NODES // 2 :])):
        request = a_request("bench", _SHAPES["4x8"], "a")
        times = _decide(engine, dict.fromkeys(nodes), request, kind=Place, repeat=repeat)
        case: dict[str, int | str] = {"nodes": _OPEN_NODES, "gang": "4x8", "offered": offered}
        yield Result(case=case, metric="decide_p50_us", value=percentile(times, 50))


def _measure_size(nodes: int, repeat: int) -> Iterator[Result]:
    topology = build_topology(nodes)
    yield from _measure_build(topology, nodes)
    began = time.process_time()
    engine = filled_engine(topology, nodes)
    case: dict[str, int | str] = {"nodes": nodes}
    yield Result(case=case, metric="recover_s", value=time.process_time() - began)
    candidates = dict.fromkeys(node_names(nodes))
    gc.collect()
    gc.freeze()  # as a service does after recovery: what stays need not be looked at again
    for shape, leaf_counts in _SHAPES.items():
        # VC a has room; VC full has none: a gang of it waits or, at a higher priority, preempts.
        for outcome, vc in (("place", "a"), ("wait", "full"), ("preempt", "full")):
            if outcome == "place" and len(leaf_counts) > nodes * (1 - _FILLED):
                continue  # as many nodes are not idle
            request = replace(
                a_request("bench", leaf_counts, vc), priority=5 if outcome == "preempt" else 0
            )
            often = repeat // 50 if outcome == "preempt" else repeat
            times = _decide(engine, candidates, request, kind=_KINDS[outcome], repeat=often)
            case = {"nodes": nodes, "gang": shape, "outcome": outcome}
            yield Result(case=case, metric="decide_p50_us", value=percentile(times, 50))
            yield Result(case=case, metric="decide_p99_us", value=percentile(times, 99))
    gc.unfreeze()


def _decide(
    engine: Engine,
    candidates: dict[NodeName, None],
    request: MemberRequest,
    *,
    kind: type[Decision],
    repeat: int,
) -> list[float]:
    times = []
    for _ in range(repeat):
        began = time.process_time_ns()
        decision = engine.plan(request, candidate_nodes=candidates)
        engine.apply(decision, now=0)
        times.append((time.process_time_ns() - began) / _NANOSECONDS_PER_MICROSECOND)
        assert isinstance(decision, kind), decision
        engine.forget_member(request.member)
    return times


def _measure_build(topology: Topology, nodes: int) -> Iterator[Result]:
    case: dict[str, int | str] = {"nodes": nodes}
    began = time.process_time()
    _empty(topology, nodes)
    yield Result(case=case, metric="build_s", value=time.process_time() - began)
    tracemalloc.start()
    engine = _empty(topology, nodes)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del engine
    yield Result(case=case, metric="build_mb", value=size / 2**20)


def _empty(topology: Topology, nodes: int) -> Engine:
    engine = Engine(lease_seconds=3600, topology=topology)
    for name in node_names(nodes):
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))
    return engine


def filled_engine(topology: Topology, nodes: int) -> Engine:
    """A cluster that recovers: 85 % of the nodes are used by gangs, in a random repeatable way."""
    random = Random(SEED)
    engine = _empty(topology, nodes)
    full = int(nodes * 0.3)
    chosen = random.sample(node_names(nodes), int(nodes * _FILLED))
    for index, name in enumerate(chosen):
        for first, size in [(0, LEAVES)] if index < full else _parts(random):
            observe_gang(engine, name, "full" if index < full else "a", first, size)
    return engine


def _parts(random: Random) -> list[tuple[int, int]]:
    """One gang has the whole node, or two have half of it each; or one leaf is idle."""
    kinds = ([(0, 8)], [(0, 8)], [(0, 4), (4, 4)], [(0, 7)])
    return random.choice(kinds)


def observe_gang(engine: Engine, node: NodeName, vc: str, first: int, size: int) -> None:
    """A gang of one member runs on leaf cells of a node."""
    request = a_request(f"{node}-{first}", (size,), vc)
    placement = Placement(
        node=node,
        leaf_cells=tuple(range(first, first + size)),
        vc_cell_type=CellTypeName("node"),
    )
    engine.observe_bound(PlacedMember(request=request, placement=placement))


def a_request(name: str, leaf_counts: tuple[int, ...], vc: str) -> MemberRequest:
    """The request of a gang's first member."""
    return MemberRequest(
        member=PodUid(name),
        gang=GangKey("bench", name),
        leaf_count=leaf_counts[0],
        gang_leaf_counts=leaf_counts,
        vc=VcName(vc),
    )
