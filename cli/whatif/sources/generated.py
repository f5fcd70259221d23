"""A generated workload: most gangs are small and short, a few large and long make most of the load.

The same seed always gives the same gangs. The benchmarks of the queue use this generator, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp
from random import Random
from typing import Final

from cli.whatif.sources.played import Played, divide, in_order
from policy.submission import ClassName, GangKey, UserName, VcName
from timemachine.model import Arrival

_DAY: Final = 86400.0
# Leaf cells of generated gangs, how often they occur, and the median of their run time.
_SIZES: Final = {1: (0.80, 900.0), 2: (0.06, 1800.0), 4: (0.05, 3600.0), 8: (0.07, 7200.0)}
_LARGE: Final = {16: (0.015, 7200.0), 32: (0.005, 7200.0)}
_SPREAD: Final = 1.3
_LONGEST: Final = 2 * _DAY
_VC_SHARES: Final = {"generated-a": 0.5, "generated-b": 0.3, "generated-c": 0.2}
_BEGINNING: Final = datetime(2026, 1, 5, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is generated: gangs that ask for a share of a cluster, on average."""

    days: float
    load: float
    """What they ask for, as a share of all leaf cells."""
    leaf_cells: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedGang:
    """One generated gang."""

    name: str
    submitted: float
    """Seconds since the beginning."""
    seconds: float
    """How long it runs."""
    leaf_cells: int
    vc: str


def generate(workload: Workload) -> Iterator[GeneratedGang]:
    """Yield gangs until they ask for the load, in no order."""
    random = Random(workload.seed)  # noqa: S311 - repeatable, and no secret
    sizes = {**_SIZES, **_LARGE}
    span = workload.days * _DAY
    asked, number = 0.0, 0
    while asked < workload.load * workload.leaf_cells * span:
        size = random.choices(list(sizes), [often for often, _ in sizes.values()])[0]
        seconds = min(sizes[size][1] * exp(random.gauss(0, _SPREAD)), _LONGEST)
        asked += size * seconds
        yield GeneratedGang(
            name=f"job-{number:06}",
            submitted=random.uniform(0, span),
            seconds=seconds,
            leaf_cells=size,
            vc=random.choices(list(_VC_SHARES), list(_VC_SHARES.values()))[0],
        )
        number += 1


def generated_source(workload: Workload, *, node_leaf_cells: int) -> Played:
    """Return a generated workload as a source; gangs use whole nodes where they can."""
    arrivals = [
        Arrival(
            gang=GangKey("generated", gang.name),
            submitted=_BEGINNING + gang.submitted,
            run_seconds=gang.seconds,
            sizes=divide(gang.leaf_cells, node_leaf_cells=node_leaf_cells),
            user=UserName(""),
            requested_class=ClassName(""),
            vc=VcName(gang.vc),
        )
        for gang in generate(workload)
    ]
    days = "1 day" if workload.days == 1 else f"{workload.days:g} days"
    told = f"load {workload.load:g} of {workload.leaf_cells:,} leaf cells"
    return Played(
        source=f"generated workload, {told}, {days}, seed {workload.seed}",
        arrivals=in_order(arrivals),
        notes=("The workload is generated: no user submitted these gangs.",),
    )
