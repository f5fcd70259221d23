"""Traces: gangs with their submission, run time, size and VC, read from a file or generated.

The file has the columns timestamp, duration, num_gpus, gpu_time and cluster, like the public trace
of Microsoft's Philly cluster. Without a file a workload of the same kind stands in: most gangs are
small and short, and a few large and long ones make most of the load.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from cli.whatif.sources.generated import Workload, generate

# What counts of the whole trace: before and after it the cluster is far from full.
_COUNTED: Final = (datetime(2017, 9, 25, tzinfo=UTC), datetime(2017, 12, 11, tzinfo=UTC))
# Four weeks whose load is that of the whole: 0.91 of 512 leaf cells.
_SLICE: Final = datetime(2017, 10, 23, tzinfo=UTC)
_FEW: Final = 10
_SHAKEN_SECONDS: Final = 600.0
_SHAKEN_RUN: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A gang of a trace."""

    name: str
    submitted: float
    seconds: float
    leaf_cells: int
    vc: str
    is_counted: bool = True
    """Whether its wait counts: not at the ends of a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Gangs in the order of their submission."""

    name: str
    jobs: Sequence[Job]

    def shaken(self, seed: int) -> "Trace":
        """Move each submission and change each run time a little; seed 0 changes nothing."""
        if not seed:
            return self
        random = Random(seed)
        jobs = [
            replace(
                job,
                submitted=job.submitted + random.uniform(0, _SHAKEN_SECONDS),
                seconds=job.seconds * random.uniform(1 - _SHAKEN_RUN, 1 + _SHAKEN_RUN),
            )
            for job in self.jobs
        ]
        return replace(self, jobs=_sorted(jobs))

    def without_few(self) -> "Trace":
        """Leave out VCs with so few gangs that a promise to them would lie idle."""
        counts = Counter(job.vc for job in self.jobs)
        return replace(self, jobs=[job for job in self.jobs if counts[job.vc] >= _FEW])

    def of_vc(self, vc: str) -> "Trace":
        """Leave only the gangs of one VC."""
        return replace(self, jobs=[job for job in self.jobs if job.vc == vc])


def read_trace(path: Path, *, is_whole: bool) -> Trace:
    """Read a trace; four weeks of it unless it is wanted whole."""
    with path.open(newline="", encoding="utf-8") as file:
        jobs = [_job(number, row) for number, row in enumerate(csv.DictReader(file))]
    if is_whole:
        first, last = (day.timestamp() for day in _COUNTED)
        counted = [replace(job, is_counted=first <= job.submitted < last) for job in jobs]
        return Trace(name=f"{path.stem}, whole", jobs=_sorted(counted))
    begin, end = _SLICE.timestamp(), (_SLICE + timedelta(weeks=4)).timestamp()
    kept = [job for job in jobs if begin <= job.submitted < end]
    return Trace(name=f"{path.stem}, four weeks", jobs=_sorted(kept))


def _job(number: int, row: dict[str, str]) -> Job:
    submitted = datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)
    return Job(
        name=f"job-{number:06}",
        submitted=submitted.timestamp(),
        seconds=float(row["duration"]),
        leaf_cells=int(row["num_gpus"]),
        vc=row["cluster"],
    )


def generate_trace(*, days: float, load: float, leaf_cells: int, seed: int) -> Trace:
    """Generate gangs that ask for a share of a cluster, on average."""
    workload = Workload(days=days, load=load, leaf_cells=leaf_cells, seed=seed)
    jobs = [
        Job(
            name=gang.name,
            submitted=gang.submitted,
            seconds=gang.seconds,
            leaf_cells=gang.leaf_cells,
            vc=gang.vc,
        )
        for gang in generate(workload)
    ]
    return Trace(name="generated", jobs=_sorted(jobs))


def _sorted(jobs: Iterable[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (job.submitted, job.name))
