"""Whether a VC is worse off in a common cluster than alone with the nodes that it was promised.

Each VC's gangs are replayed twice: among the gangs of all other VCs, and alone on a cluster that
has only the nodes of its promise. All gangs are guaranteed, so that no VC gains by the other ones;
what is measured is whether one loses. Run times are known: with predictions from the runs of other
VCs both replays would differ by chance.
"""

from collections.abc import Sequence
from statistics import mean

from bench.queue.queues import planned
from bench.queue.replay import Start, replay, world_of
from bench.queue.shape import Form, build_cluster, shares_of
from bench.queue.strategies import document
from bench.queue.trace import Trace
from bench.report import Result, percentile
from policy.queues.queues import Strategy
from timemachine.planned.run_times import KnownRunTimes

_MINUTE = 60.0


def measure_sharing(trace: Trace, *, nodes: int, strategy: str = Strategy.FIFO) -> list[Result]:
    """Return by how many minutes the mean and the p95 wait of each VC exceed those alone."""
    trace = trace.without_few()
    shares, queues = shares_of(trace, nodes=nodes), document(Strategy(strategy), per_pool=1)
    gangs = planned(run_times=KnownRunTimes)
    together = replay(trace, world_of(build_cluster(shares), queues), gangs, Form.VCS).starts
    case: dict[str, int | str] = {"load": trace.name, "form": "sharing", "strategy": strategy}
    means, tails, found = [0.0], [0.0], list[Result]()
    for vc, count in shares.items():
        world = world_of(build_cluster({vc: count}), queues)
        alone = _waits(replay(trace.of_vc(vc), world, gangs, Form.VCS).starts)
        shared = _waits([start for start in together if start.vc == vc])
        means.append(mean(shared) - mean(alone))
        tails.append(percentile(shared, 95) - percentile(alone, 95))
        of_vc = {**case, "vc": vc, "nodes": count}
        found += [
            Result(case=of_vc, metric="mean_alone_min", value=mean(alone)),
            Result(case=of_vc, metric="mean_excess_min", value=means[-1]),
            Result(case=of_vc, metric="p95_excess_min", value=tails[-1]),
        ]
    return [
        *found,
        Result(case=case, metric="worst_mean_excess_min", value=max(means)),
        Result(case=case, metric="worst_p95_excess_min", value=max(tails)),
    ]


def _waits(starts: Sequence[Start]) -> list[float]:
    return [start.wait / _MINUTE for start in starts if start.is_counted]
