"""The engine alone: plan + apply of gangs on a cluster that is mostly full."""

from collections.abc import Callable
from itertools import count
from random import Random

from bench.report import SEED, Result, best_percentiles
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, Place
from policy.submission import GangKey, NodeName, PodUid

_LEAVES = 8
_FILLED = 0.85
_GANGS = {"1x1": (1,), "1x8": (8,), "4x8": (8,) * 4}


def measure(*, is_quick: bool) -> list[Result]:
    """Time decisions on clusters of growing size."""
    sizes = (100, 1000) if is_quick else (100, 1000, 10_000)
    results = []
    for shape in _GANGS:
        works = {str(nodes): _decision(nodes=nodes, shape=shape) for nodes in sizes}
        best = best_percentiles(works, percents=(50, 99), repeat=100 if is_quick else 1000)
        for nodes, values in best.items():
            case: dict[str, int | str] = {"nodes": int(nodes), "gang": shape}
            results += [
                Result(case=case, metric=f"decide_p{percent}_us", value=value)
                for percent, value in values.items()
            ]
    return results


def _decision(*, nodes: int, shape: str) -> Callable[[], None]:
    """Plan and apply a new gang, then let it go again."""
    engine, names = _build(nodes)
    numbers = count()

    def decide() -> None:
        uid = PodUid(f"pod-{next(numbers)}")
        request = _request(uid, _GANGS[shape])
        decision = engine.plan(request, candidate_nodes=names)
        engine.apply(decision, now=0)
        if isinstance(decision, Place):
            engine.forget_member(uid)

    return decide


def _build(nodes: int) -> tuple[Engine, dict[NodeName, None]]:
    """A cluster that is 85 % full of small gangs, in a random but repeatable way."""
    random = Random(SEED)
    engine = Engine(lease_seconds=3600)
    names = {NodeName(f"node-{index:05}"): None for index in range(nodes)}
    for name in names:
        engine.observe_node(NodeCell(name=name, leaf_type=None, leaf_count=_LEAVES))
        used = _LEAVES if random.random() < _FILLED else 0
        if used:
            request = _request(PodUid(f"filler-{name}"), (used,))
            engine.observe_bound(request, node=name, leaf_cells=tuple(range(used)))
    return engine, names


def _request(uid: PodUid, sizes: tuple[int, ...]) -> MemberRequest:
    return MemberRequest(
        member=uid, gang=GangKey("bench", uid), leaf_count=sizes[0], gang_leaf_counts=sizes
    )
