"""Builds answers to capacity questions."""

from collections.abc import Sequence
from dataclasses import replace

from timemachine.capacity import CapacityAnswer, CapacityStep, Goal, Measure, find_enough
from timemachine.comparison import Grouping, Waits

_WAITS = Waits(gangs=120, mean=0.0, median=0.0, p95=0.0, longest=0.0)


def a_capacity_answer(
    waits: Sequence[float] = (90_000.0, 41_000.0, 12_000.0, 6_500.0, 900.0),
    *,
    goal: float = 7200.0,
    name: str = "lab",
) -> CapacityAnswer:
    """Build an answer of one wait for each 8 nodes more, the first without any."""
    steps = [_step(8 * index, wait, goal=goal) for index, wait in enumerate(waits)]
    return CapacityAnswer(
        source="decision log, 2026-03-01T00:00:00Z to 2026-03-08T00:00:00Z",
        goal=Goal(measure=Measure.P95, seconds=goal, grouping=Grouping.VC, name=name),
        node="A100 nodes of 8 leaf cells",
        leaf_cells_each=8,
        most=32,
        steps=steps,
        enough=find_enough(steps),
        unknown=("The run times of 3 of 120 gangs are predicted.",),
    )


def _step(nodes: int, seconds: float, *, goal: float) -> CapacityStep:
    waits = replace(_WAITS, p95=seconds, mean=seconds / 4)
    return CapacityStep(
        nodes=nodes,
        seconds=seconds,
        is_met=seconds <= goal,
        waits=waits,
        all=waits,
        utilisation=0.9 - nodes / 200,
    )
