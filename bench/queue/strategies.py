"""The strategies that are compared: strict first in, first out, and Queues documents.

Each strategy of the document is replayed with a reservation for the head of each pool, and without
one (`… skipping`): then every gang that fits starts, and large ones may wait for very long.
"""

from dataclasses import dataclass, replace

from bench.queue.queues import StrictQueue, planned
from policy.queues.queues import DEFAULT_QUEUES, PRESETS, QueueLevel, Queues, Strategy
from timemachine.planned.ports import GangsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedQueue:
    """What places the gangs of a trace, and by which document."""

    gangs: GangsOf
    queues: Queues = DEFAULT_QUEUES


def document(strategy: Strategy, *, per_pool: int) -> Queues:
    """Return the document of a strategy with so many reservations in each pool."""
    level = QueueLevel(name="all", strategy=strategy, worth=dict(PRESETS[strategy]))
    reservation = replace(DEFAULT_QUEUES.reservation, per_pool=per_pool)
    return replace(DEFAULT_QUEUES, levels=(level,), reservation=reservation)


def _planned(strategy: Strategy, *, per_pool: int) -> ComparedQueue:
    return ComparedQueue(gangs=planned(), queues=document(strategy, per_pool=per_pool))


STRATEGIES: dict[str, ComparedQueue] = {
    "strict": ComparedQueue(gangs=StrictQueue),
    "fifo skipping": _planned(Strategy.FIFO, per_pool=0),
    "fifo": _planned(Strategy.FIFO, per_pool=1),
    "shortest skipping": _planned(Strategy.SHORTEST_FIRST, per_pool=0),
    "shortest-first": _planned(Strategy.SHORTEST_FIRST, per_pool=1),
}
