"""Waits under each strategy: a trace through the real planner and engine, with compressed time.

Compare strategies by ratios within one run. A run of many cases can be interrupted: what was
replayed is kept in a file and not replayed again.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Final

from bench.core.clusters import LEAVES
from bench.queue.events import measure_events
from bench.queue.figures import Figures, figures_of, medians
from bench.queue.options import QueueOptions
from bench.queue.replay import replay, world_of
from bench.queue.shape import Form, build_cluster, one_share, shares_of
from bench.queue.sharing import measure_sharing
from bench.queue.strategies import STRATEGIES
from bench.queue.trace import Trace, generate_trace, read_trace
from bench.report import SEED, Result

_CAPACITIES: Final = (512, 576)
_GENERATED_CAPACITY: Final = 64
_GENERATED_LOAD: Final = 0.95
_SHARED_CAPACITY: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One replay."""

    trace: Path | None
    is_whole: bool
    days: float
    """How long the generated workload is."""
    strategy: str
    form: Form
    capacity: int
    shake: int

    @property
    def key(self) -> str:
        """Identifies what was replayed."""
        return json.dumps(asdict(self), default=str, sort_keys=True)


def measure(*, is_quick: bool, options: QueueOptions) -> list[Result]:
    """Replay all cases; return the medians over shaken inputs."""
    days = 2.0 if is_quick else 14.0
    capacities = options.capacities or (_CAPACITIES if options.trace else (_GENERATED_CAPACITY,))
    forms = options.forms or ((Form.FLAT,) if is_quick else (Form.FLAT, Form.VCS))
    if options.is_sharing:
        return _measure_sharing(options, capacities)
    shakes = range(1, options.shakes + 1) if options.shakes > 1 else (0,)
    groups = [
        [
            Case(
                trace=options.trace,
                is_whole=options.is_whole,
                days=days,
                strategy=strategy,
                form=form,
                capacity=capacity,
                shake=shake,
            )
            for shake in shakes
        ]
        for form, capacity, strategy in product(forms, capacities, options.strategies)
    ]
    found = _replay_all([case for group in groups for case in group], options)
    results = [result for group in groups for result in _results(group, found)]
    if options.trace:
        return results
    shared = _measure_sharing(options, (_SHARED_CAPACITY,))
    return [*results, *shared, *measure_events(is_quick=is_quick)]


def _measure_sharing(options: QueueOptions, capacities: Sequence[int]) -> list[Result]:
    """Compare VCs that share a cluster with each of them alone."""
    trace = (
        read_trace(options.trace, is_whole=options.is_whole)
        if options.trace
        else generate_trace(days=2.0, load=_GENERATED_LOAD, leaf_cells=_SHARED_CAPACITY, seed=SEED)
    )
    return [
        result
        for capacity in capacities
        for result in measure_sharing(trace, nodes=capacity // LEAVES)
    ]


def _results(group: Sequence[Case], found: dict[str, Figures]) -> Iterator[Result]:
    first = group[0]
    case: dict[str, int | str] = {
        "load": load_trace(first).name,
        "form": first.form,
        "capacity": first.capacity,
        "strategy": first.strategy,
    }
    for metric, value in medians([found[one.key] for one in group]).items():
        yield Result(case=case, metric=metric, value=value)


def _replay_all(cases: Sequence[Case], options: QueueOptions) -> dict[str, Figures]:
    found = _kept(options.resume)
    missing = [case for case in cases if case.key not in found]
    if options.jobs == 1:
        return found | _keep(map(_replay_one, missing), options.resume)
    with ProcessPoolExecutor(options.jobs) as pool:
        return found | _keep(pool.map(_replay_one, missing), options.resume)


def _kept(path: Path | None) -> dict[str, Figures]:
    """Return the figures of earlier runs."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {row["case"]: row["figures"] for row in map(json.loads, lines)}


def _keep(done: Iterator[tuple[str, Figures]], path: Path | None) -> dict[str, Figures]:
    """Write down each replay as soon as it is done."""
    found: dict[str, Figures] = {}
    for key, figures in done:
        found[key] = figures
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"case": key, "figures": figures}) + "\n")
    return found


def _replay_one(case: Case) -> tuple[str, Figures]:
    trace = load_trace(case).shaken(case.shake)
    if case.form is Form.VCS:
        trace = trace.without_few()
    nodes = case.capacity // LEAVES
    shares = shares_of(trace, nodes=nodes) if case.form is Form.VCS else one_share(nodes)
    queue = STRATEGIES[case.strategy]
    world = world_of(build_cluster(shares), queue.queues)
    return case.key, figures_of(replay(trace, world, queue.gangs, case.form))


def load_trace(case: Case) -> Trace:
    """Read or generate the trace of a case."""
    if case.trace is not None:
        return read_trace(case.trace, is_whole=case.is_whole)
    return generate_trace(
        days=case.days, load=_GENERATED_LOAD, leaf_cells=_GENERATED_CAPACITY, seed=SEED
    )
