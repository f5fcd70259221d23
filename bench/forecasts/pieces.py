"""How long sampled futures block the leader at most: `python -m bench.forecasts.pieces`.

Generated gangs wait in 20 VCs. Pieces are measured in CPU time, so that other load matters little.
"""

import sys
from collections.abc import Generator
from random import Random
from time import thread_time
from typing import TypeVar

from bench.report import SEED, Result, format_table
from extender.queue.forecast.calibration import ASSUMED_SCORES, Curve
from extender.queue.forecast.closures import CopiedPool
from extender.queue.forecast.copied_gangs import CopiedGang
from extender.queue.forecast.futures import QueueCopy, sample_starts
from extender.queue.forecast.starts import draw_start
from policy.submission import GangKey

_VCS = 20
_WAITING = 10_000
_RUNNING = 2_000
_SAMPLES = 8

T = TypeVar("T")


def main() -> int:
    """Measure, and print a table."""
    pieces: list[float] = []
    starts = _timed(sample_starts(_queue(), samples=_SAMPLES), pieces)
    began = thread_time()
    for samples in list(starts.values())[:50]:
        draw_start(samples)
    pieces.append(thread_time() - began)
    case: dict[str, int | str] = {"waiting": _WAITING, "running": _RUNNING}
    values = {
        "longest_piece_ms": 1000 * max(pieces),
        "future_ms": 1000 * sum(pieces) / _SAMPLES,
        "round_seconds": sum(pieces),
    }
    results = [Result(case=case, metric=name, value=value) for name, value in values.items()]
    print(format_table("pieces of futures", results))
    return 0


def _queue() -> QueueCopy:
    random = Random(SEED)

    def gang(number: int) -> CopiedGang:
        curve = Curve(random.gauss(7.0, 1.5), 1.0, ASSUMED_SCORES)
        return CopiedGang(
            gang=GangKey("bench", f"gang-{number}"),
            pool=(f"vc-{random.randrange(_VCS)}", "A100"),
            also=(("all", "A100"),),
            leaf_cells=random.choice((1, 1, 1, 2, 4, 8, 8, 16, 64)),
            left=lambda share, _: curve.left(0.0, share),
            safe=curve.quantile(0.9),
        )

    gangs = [gang(number) for number in range(_RUNNING + _WAITING)]
    names = ["all", *(f"vc-{vc}" for vc in range(_VCS))]
    free: dict[CopiedPool, int] = {(name, "A100"): 0 for name in names}
    return QueueCopy(free=free, running=gangs[:_RUNNING], waiting=gangs[_RUNNING:])


def _timed(steps: Generator[None, None, T], pieces: list[float]) -> T:
    while True:
        began = thread_time()
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            pieces.append(thread_time() - began)


if __name__ == "__main__":
    sys.exit(main())
