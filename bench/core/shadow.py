"""Shadow times on the engine alone: when a gang could start, if others end as expected."""

import gc
import time
from random import Random

from bench.core.clusters import LEAVES, build_topology, node_names
from bench.core.engine import a_request, filled_engine, observe_gang
from bench.report import SEED, Result, percentile
from extender.cells.engine import Engine
from extender.cells.model import NodeCell
from policy.submission import GangKey, NodeName, VcName

_VC = "full"
_GANGS = {"4x8": (8,) * 4, "16x8": (8,) * 16, "64x8": (8,) * 64}
_NANOSECONDS_PER_MILLISECOND = 1_000_000


def measure(*, is_quick: bool) -> list[Result]:
    """Time the search at two sizes of clusters."""
    sizes = (4000,) if is_quick else (1000, 4000)
    repeat = 60 if is_quick else 200
    found = [one for nodes in sizes for one in _measure(nodes, repeat)]
    return found + _measure_small(sizes[-1], repeat // 3)


def _measure_small(nodes: int, repeat: int) -> list[Result]:
    """The same where the VC runs gangs of one leaf cell only: hundreds of them have to end."""
    engine = Engine(lease_seconds=3600, topology=build_topology(nodes))
    names = node_names(nodes)
    for name in names:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=LEAVES))
    for name in names[: int(nodes * 0.3)]:
        for leaf in range(LEAVES):
            observe_gang(engine, name, _VC, leaf, 1)
    candidates, random = dict.fromkeys(names), Random(SEED)
    gc.collect()
    gc.freeze()  # as a service does after recovery
    times = [_time(engine, "16x8", candidates, random) for _ in range(repeat)]
    gc.unfreeze()
    case: dict[str, int | str] = {"nodes": nodes, "gang": "16x8", "among": "1x1"}
    return [Result(case=case, metric="shadow_p95_ms", value=percentile(times, 95))]


def _measure(nodes: int, repeat: int) -> list[Result]:
    """Time the search for gangs of a full VC, with another order of ends each time."""
    engine = filled_engine(build_topology(nodes), nodes)
    candidates, random, found = dict.fromkeys(node_names(nodes)), Random(SEED), list[Result]()
    gc.collect()
    gc.freeze()
    for gang in _GANGS:
        times = [_time(engine, gang, candidates, random) for _ in range(repeat)]
        case: dict[str, int | str] = {"nodes": nodes, "gang": gang}
        for rank in (50, 95, 100):
            value = percentile(times, rank)
            found.append(Result(case=case, metric=f"shadow_p{rank}_ms", value=value))
    gc.unfreeze()
    return found


def _time(engine: Engine, gang: str, candidates: dict[NodeName, None], random: Random) -> float:
    holders = sorted(engine.holders(VcName(_VC)))
    ends: list[tuple[GangKey, float]] = sorted(
        ((key, random.expovariate(1 / 3600)) for key in holders), key=lambda one: one[1]
    )
    request = a_request("shadow", _GANGS[gang], _VC)
    began = time.process_time_ns()
    shadow = engine.shadow(request, ends=ends, candidate_nodes=candidates, now=0.0)
    took = (time.process_time_ns() - began) / _NANOSECONDS_PER_MILLISECOND
    assert shadow is not None
    return took
