"""What is replayed: the options of `python -m bench queue`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.queue.shape import Form
from bench.queue.strategies import STRATEGIES


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """The traces, clusters and strategies of a run."""

    trace: Path | None = None
    """A generated workload stands in for a trace that is not given."""
    is_whole: bool = False
    capacities: Sequence[int] = ()
    forms: Sequence[Form] = ()
    """Flat alone in a short run, else flat and with VCs."""
    strategies: Sequence[str] = tuple(STRATEGIES)
    is_sharing: bool = False
    """Compare VCs that share a cluster with each of them alone, and nothing else."""
    shakes: int = 1
    resume: Path | None = None
    jobs: int = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options to those of all benchmarks."""
    group = parser.add_argument_group("queue")
    group.add_argument("--trace", type=Path, help="a CSV file: timestamp, duration, num_gpus, …")
    group.add_argument("--whole", action="store_true", help="the whole trace, not four weeks of it")
    group.add_argument("--capacities", type=_numbers, help="leaf cells of the clusters: 512,576")
    group.add_argument("--forms", type=_names, help=f"of {','.join(Form)}")
    group.add_argument("--strategies", type=_names, help=f"of {','.join(STRATEGIES)}")
    group.add_argument("--sharing", action="store_true", help="only whether sharing costs a VC")
    group.add_argument("--shakes", type=int, default=1, help="medians of so many shaken inputs")
    group.add_argument("--resume", type=Path, help="keep what was replayed in this file")
    group.add_argument("--jobs", type=int, default=1, help="replay so many cases at once")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def is_selection(given: argparse.Namespace) -> bool:
    """Tell whether only some cases are asked for, or those of a trace."""
    return bool(given.trace or given.sharing or given.capacities or given.forms or given.strategies)


NOTHING_CHOSEN: Final = QueueOptions(strategies=())


def chosen(given: argparse.Namespace) -> QueueOptions:
    """Return the options of a command line, without strategies if none are given."""
    return replace(from_arguments(given), strategies=given.strategies or ())


def from_arguments(given: argparse.Namespace) -> QueueOptions:
    """Return the options of a command line."""
    return QueueOptions(
        trace=given.trace,
        is_whole=given.whole,
        capacities=given.capacities or (),
        forms=tuple(map(Form, given.forms or ())),
        strategies=given.strategies or tuple(STRATEGIES),
        is_sharing=given.sharing,
        shakes=given.shakes,
        resume=given.resume,
        jobs=given.jobs,
    )
