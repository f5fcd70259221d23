"""The capacity question: how many nodes bring a wait below a goal, and the answer as text."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cli.whatif.players import Players
from cli.whatif.report import format_unknown
from cli.whatif.sides import Sides
from cli.whatif.words import duration, share, table
from policy.errors import SettingsError
from policy.wording import count_of, listing, quote
from timemachine.capacity import (
    CapacityAnswer,
    CapacityStep,
    Goal,
    Measure,
    find_enough,
    next_numbers,
    step_of,
)
from timemachine.compare import compare
from timemachine.comparison import Comparison, Grouping
from timemachine.worlds import AddedNodes


async def ask(
    sides: Sides, goal: Goal, added: AddedNodes, players: Players, *, source: str
) -> CapacityAnswer:
    """Play numbers of added nodes until the answer is known. Nothing is added at first.

    Raises SettingsError if the goal is about gangs that there are none of.
    """
    steps: list[CapacityStep] = []
    unknown: Sequence[str] = ()
    while numbers := next_numbers(steps, least=0, most=added.number):
        worlds = [sides.with_nodes(added, number) for number in numbers]
        what = f"playing with {listing([f'+{number}' for number in numbers])} nodes"
        for number, run in zip(numbers, await players.play(worlds, what=what), strict=True):
            found = compare(run, run, source=source)
            _check_row(goal, found)
            unknown = found.unknown
            steps.append(step_of(goal, found.after, nodes=number))
    steps.sort(key=lambda step: step.nodes)
    each = _leaf_cells_each(sides, added)
    return CapacityAnswer(
        source=source,
        goal=goal,
        node=f"{added.leaf_type} nodes of {count_of(each, 'leaf cell')}",
        leaf_cells_each=each,
        most=added.number,
        steps=tuple(steps),
        enough=find_enough(steps),
        unknown=unknown,
    )


def _check_row(goal: Goal, found: Comparison) -> None:
    if goal.grouping is not None and goal.waits(found.after) is None:
        known = listing([quote(name) for name in found.after.by[goal.grouping]])
        told = f"no gang has {goal.grouping} {quote(goal.name)}; there are {known}"
        raise SettingsError(f"--goal: {told}")


def _leaf_cells_each(sides: Sides, added: AddedNodes) -> int:
    """Return the leaf cells of one added node."""
    before = {node.name for node in sides.nodes}
    one = sides.with_nodes(replace(added, number=1), 1)
    return sum(node.leaf_count for node in one.nodes if node.name not in before)


def format_capacity(answer: CapacityAnswer) -> Iterator[str]:
    """Say how many nodes are enough, and what each number that was tried led to."""
    goal = describe_goal(answer.goal)
    yield answer.source
    if answer.enough is None:
        yield f"{answer.most:,} more {answer.node} are not enough for {goal}"
    elif answer.enough == 0:
        yield f"no more {answer.node} are needed for {goal}"
    else:
        yield f"{answer.enough:,} more {answer.node} are enough for {goal}"
    yield ""
    rows: list[Sequence[str]] = [
        ("nodes added", str(answer.goal.measure), "mean", "of all gangs", "utilisation", "")
    ]
    for step in answer.steps:
        rows.append(
            (
                f"{step.nodes:,}",
                duration(step.seconds),
                duration(step.waits.mean),
                duration(step.all.mean),
                share(step.utilisation),
                "enough" if step.is_met else "",
            )
        )
    yield from table(rows, indent=0)
    yield from format_unknown(answer.unknown)


def describe_goal(goal: Goal) -> str:
    """Write a goal in words: `a p95 wait of at most 2 h in VC lab`."""
    measure = {Measure.P95: "p95 wait", Measure.LONGEST: "longest wait"}
    what = measure.get(goal.measure, f"{goal.measure} wait")
    told = f"a {what} of at most {duration(goal.seconds)}"
    if goal.grouping is None:
        return f"{told} of all gangs"
    by = {Grouping.VC: "VC", Grouping.SIZE: "size"}.get(goal.grouping, str(goal.grouping))
    return f"{told} of {by} {goal.name}"
