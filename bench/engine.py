"""The engine alone: plan + apply of gangs on a cluster that is mostly full."""

from collections.abc import Iterator
from itertools import count
from random import Random

from bench.report import SEED, Result, microseconds_of, percentile
from extender.cells.engine import Engine
from extender.cells.model import MemberRequest, NodeCell, Place
from policy.submission import GangKey, NodeName, PodUid

_LEAVES = 8
_FILLED = 0.85
_GANGS = {"1x1": (1,), "1x8": (8,), "4x8": (8,) * 4}


def measure(*, is_quick: bool) -> list[Result]:
    """Time decisions on clusters of growing size."""
    sizes = (100, 1000) if is_quick else (100, 1000, 10_000)
    repeat = 300 if is_quick else 2000
    return [
        result
        for nodes in sizes
        for shape in _GANGS
        for result in _measure_case(nodes=nodes, shape=shape, repeat=repeat)
    ]


def _measure_case(*, nodes: int, shape: str, repeat: int) -> Iterator[Result]:
    engine, names = _build(nodes)
    numbers = count()

    def decide() -> None:
        uid = PodUid(f"pod-{next(numbers)}")
        request = _request(uid, _GANGS[shape])
        decision = engine.plan(request, candidate_nodes=names)
        engine.apply(decision, now=0)
        if isinstance(decision, Place):
            engine.forget_member(uid)

    times = microseconds_of(decide, repeat=repeat)
    case: dict[str, int | str] = {"nodes": nodes, "gang": shape}
    yield Result(case=case, metric="decide_p50_us", value=percentile(times, 50))
    yield Result(case=case, metric="decide_p99_us", value=percentile(times, 99))


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
