"""How many nodes bring a wait below a goal: which numbers to try, and the answer.

Pure. The one idea: each number of nodes is one play of the same arrivals. More nodes make nearly
all waits shorter, but not every single one, so a number counts as enough only if every larger
number that was tried meets the goal, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from timemachine.comparison import Grouping, Side, Waits

_COARSE: Final = 4
"""The whole range is divided into so many parts before the search goes on in one of them."""


class Measure(StrEnum):
    """Which figure of the waits a goal is about."""

    MEAN = "mean"
    MEDIAN = "median"
    P95 = "p95"
    LONGEST = "longest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A wait that is to be reached: `p95 wait of VC lab at most 2 h`."""

    measure: Measure
    seconds: float
    grouping: Grouping | None = None
    """By what the gangs are chosen; None for all gangs."""
    name: str = ""
    """The row of that grouping, such as the VC."""

    def waits(self, side: Side) -> Waits | None:
        """Return the waits that the goal is about; None if no gang is of that row."""
        return side.all if self.grouping is None else side.by[self.grouping].get(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityStep:
    """What one number of added nodes led to."""

    nodes: int
    """How many nodes were added."""
    seconds: float
    """The figure that the goal is about."""
    is_met: bool
    waits: Waits
    """All figures of the gangs that the goal is about."""
    all: Waits
    """Those of all gangs."""
    utilisation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityAnswer:
    """How many nodes bring a wait below a goal."""

    source: str
    """Where the arrivals are from, in words."""
    goal: Goal
    node: str
    """What is added, in words: `A100 nodes of 8 leaf cells`."""
    leaf_cells_each: int
    most: int
    """The largest number of nodes that was allowed."""
    steps: Sequence[CapacityStep]
    """Every number that was tried, the smallest first."""
    enough: int | None
    """The smallest number that was found to be enough; None if the largest is not."""
    unknown: Sequence[str] = ()
    """What a simulation cannot know, in words."""


def step_of(goal: Goal, side: Side, *, nodes: int) -> CapacityStep:
    """Judge a play with so many added nodes. A row without gangs waits for nothing."""
    waits = goal.waits(side) or Waits(gangs=0, mean=0.0, median=0.0, p95=0.0, longest=0.0)
    seconds: float = getattr(waits, goal.measure)
    return CapacityStep(
        nodes=nodes,
        seconds=seconds,
        is_met=seconds <= goal.seconds,
        waits=waits,
        all=side.all,
        utilisation=side.utilisation,
    )


def next_numbers(steps: Sequence[CapacityStep], *, least: int, most: int) -> list[int]:
    """Return the numbers of nodes to try next; none if the answer is known.

    First the whole range in equal parts, then two numbers at a time within the part in which the
    goal begins to be met: both cores have work.
    """
    tried = {one.nodes for one in steps}
    parts = range(_COARSE + 1)
    coarse = dict.fromkeys(least + (most - least) * part // _COARSE for part in parts)
    if missing := [number for number in coarse if number not in tried]:
        return missing
    enough = find_enough(steps)
    if enough is None or enough == least:
        return []
    below = max(number for number in tried if number < enough)
    gap = enough - below
    return list(dict.fromkeys(below + gap * part // 3 for part in (1, 2) if gap * part // 3 > 0))


def find_enough(steps: Sequence[CapacityStep]) -> int | None:
    """Return the smallest number that was tried and meets the goal, as all larger ones do."""
    enough: int | None = None
    for one in sorted(steps, key=lambda step: step.nodes, reverse=True):
        if not one.is_met:
            break
        enough = one.nodes
    return enough
