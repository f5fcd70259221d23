"""Gangs that are spared for now: whether a gang waits only until these have run for long enough.

A gang that has run for less than the minimum is no victim of its own VC. What every VC may end, it
may end at once: a promise does not wait. So a gang that finds no victims is planned once more, as
if no gang were spared. If it then preempts, it waits for nothing but minimum runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from extender.cells.answers import listed, needed, wait
from extender.cells.budget import YOUNG_SLOTS, OutOfBudgetError, budget_for
from extender.cells.fit.demand import Ask
from extender.cells.model import Place, Preempt, ReasonCode, Wait
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.registry import Registry

Find = Callable[[Ask], Place | Preempt | None]


def wait_for_runs(table: AllocationTable, registry: Registry, ask: Ask, find: Find) -> Wait | None:
    """Return the decision to wait for minimum runs; None if they are not the only obstacle."""
    young = list(_young(registry, ask))
    if not young:
        return None
    longest = max(gang.minimum_run for gang in young)
    with table.what_if():
        for gang in young:
            _set(table, gang, 0)
        decision = _find_anew(ask, find)
    if not isinstance(decision, Preempt):
        return None
    spared = {gang.key for gang in young}
    named = [str(key) for key in decision.victims if key in spared]
    told = {**listed("victims", named), "seconds": longest, "vc": ask.request.vc}
    return wait(ask.request, ReasonCode.MINIMUM_RUN, **needed(ask.request, ask.sizes), **told)


def _young(registry: Registry, ask: Ask) -> Iterator[PlacedGang]:
    """The spared gangs that it could preempt otherwise, as many as one decision can try."""
    slots = 0
    for gang in registry.young_below(ask.request.vc, ask.request.priority):
        slots += len(gang.slots)
        if slots > YOUNG_SLOTS:
            return
        yield gang


def _find_anew(ask: Ask, find: Find) -> Place | Preempt | None:
    try:
        return find(replace(ask, budget=budget_for(len(ask.request.gang_leaf_counts))))
    except OutOfBudgetError:
        return None


def _set(table: AllocationTable, gang: PlacedGang, seconds: int) -> None:
    """Change a minimum run within a trial."""
    before = gang.minimum_run
    gang.minimum_run = seconds
    table.changes.record(gang)

    def undo() -> None:
        gang.minimum_run = before
        table.changes.record(gang)

    table.record_undo(undo)
