"""Racks spanned by gangs of 4 nodes in a half-used cluster: ours, the optimum, and next-fit."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from bench.core.clusters import build_topology, node_names
from bench.report import SEED, Result
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, Place
from policy.submission import GangKey, NodeName, PodUid, VcName

_RACKS, _RACK, _GANG = 32, 8, 4


def measure_spread(*, gangs: int) -> list[Result]:
    """Place gangs one after the other; each time compare with every other choice there was."""
    nodes = _RACKS * _RACK
    names = node_names(nodes)
    random = Random(SEED)
    engine = Engine(lease_seconds=3600, topology=build_topology(nodes, rack=_RACK))
    for name in names:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=8))
    free = set(names)
    for name in random.sample(names, nodes // 2):
        _take(engine, f"filler-{name}", 1, [name])
        free.discard(name)
    ours = best = next_fit = placed = 0
    for number in range(gangs):
        if len(free) < _GANG:
            break
        best += _fewest_racks(_by_rack(names, free))
        next_fit += len({names.index(name) // _RACK for name in sorted(free)[:_GANG]})
        taken = _take(engine, f"gang-{number}", _GANG, names)
        ours += len({names.index(name) // _RACK for name in taken})
        free.difference_update(taken)
        placed += 1
    case: dict[str, int | str] = {"racks": _RACKS, "gang": "4x8"}
    return [
        Result(case={**case, "by": way}, metric="racks_spanned", value=total / placed)
        for way, total in (("cellgate", ours), ("optimum", best), ("next-fit", next_fit))
    ]


def _take(engine: Engine, name: str, size: int, candidates: list[NodeName]) -> list[NodeName]:
    request = MemberRequest(
        member=PodUid(name),
        gang=GangKey("bench", name),
        leaf_count=8,
        gang_leaf_counts=(8,) * size,
    )
    for vc in ("a", "full"):
        asked = replace(request, vc=VcName(vc))
        decision = engine.plan(asked, candidate_nodes=dict.fromkeys(candidates))
        if isinstance(decision, Place):
            engine.apply(decision, now=0)
            return [decision.placement.node, *(other.node for other in decision.others)]
    raise AssertionError(f"{name} does not fit")


def _by_rack(names: Sequence[NodeName], free: set[NodeName]) -> list[int]:
    counts = [0] * _RACKS
    for index, name in enumerate(names):
        counts[index // _RACK] += name in free
    return counts


def _fewest_racks(free: Sequence[int]) -> int:
    """Whole nodes only: taking the emptiest racks first is the best there is."""
    need, racks = _GANG, 0
    for room in sorted(free, reverse=True):
        if need <= 0:
            break
        need -= room
        racks += 1
    return racks
