"""The jobs of a trace."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from extender.queue.forecast.keys import RunKeys


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job: when it was submitted, how long it ran, and with what."""

    name: str
    submitted: float
    seconds: float
    leaf_cells: int
    vc: str

    @property
    def keys(self) -> RunKeys:
        """By what it is compared with others."""
        return RunKeys(vc=self.vc, leaf_cells=self.leaf_cells)


def read_jobs(path: Path) -> list[TraceJob]:
    """Read the jobs of a trace in the order in which they were submitted."""
    with path.open(newline="") as file:
        rows = sorted(
            (
                datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC).timestamp(),
                max(1.0, float(row["duration"])),
                int(row["num_gpus"]),
                row["cluster"],
            )
            for row in csv.DictReader(file)
        )
    return [TraceJob(str(number), *row) for number, row in enumerate(rows)]
