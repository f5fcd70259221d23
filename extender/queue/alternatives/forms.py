"""Which form of a gang is used, and decisions about gangs with alternatives.

Each attempt tries the forms in the order of preference: what the pods ask for, then each
alternative. The first form in which the gang can start now is used. If there is none, the first
form for which other gangs may be ended is used; so no gang ends while another form fits. If there
is none either, the gang waits, and its reason names every form.

A form is final once a pod states it: its gate is lifted, its charge follows it, and a new leader
must find it. Until then a gang that loses its places, or its victims, tries all forms again.

Reservations, shadow times and expected starts of a gang that waits are those of what it asks for: a
promise for one form stays true, whatever another form allows earlier.
"""

from collections.abc import Sequence

from extender.cells.answers import fact_of
from extender.cells.model import Decision, Place, Preempt, TriedForms
from extender.queue.ports import Cells, Nodes
from extender.queue.queued_gang import QueuedGang
from extender.queue.reserve.backfill import Guards, decide_beside, preview_beside
from policy.queues.alternatives import format_used, name_form, read_used


def settle_form(gang: QueuedGang, cells: Cells) -> None:
    """Give a gang the form that its pods state; without places, the one that they ask for."""
    if not gang.pods or not gang.first.forms:
        return
    stated = _stated(gang)
    if stated:
        gang.take_form(read_used(stated), stated)
    elif _may_choose(gang, cells):
        gang.take_form(0)


def _stated(gang: QueuedGang) -> str:
    """Return the alternative that the oldest pod states of those that state one."""
    return next((pod.alternative for pod in gang.oldest_first() if pod.alternative), "")


def _may_choose(gang: QueuedGang, cells: Cells) -> bool:
    """Tell whether a gang holds nothing in the form that it has."""
    holds = gang.victims or cells.is_preempting(gang.key) or cells.known_sizes(gang.key)
    return not holds and not gang.has_begun


def decide_forms(
    gang: QueuedGang, guards: Guards, *, cells: Cells, nodes: Nodes, now: float
) -> list[Decision]:
    """Decide about the members of a gang that have no place, in the first form that fits."""
    tried = choose_form(gang, guards, cells=cells, nodes=nodes, now=now)
    return decide_beside(gang, guards, cells=cells, nodes=nodes, now=now, tried=tried)


def preview_forms(
    gang: QueuedGang, guards: Guards, *, cells: Cells, nodes: Nodes, now: float
) -> Decision:
    """Return what would be decided about a gang now, which takes the form of the decision."""
    choose_form(gang, guards, cells=cells, nodes=nodes, now=now)
    return preview_beside(gang, guards, cells=cells, nodes=nodes, now=now)


def choose_form(
    gang: QueuedGang, guards: Guards, *, cells: Cells, nodes: Nodes, now: float
) -> TriedForms | None:
    """Give a gang the form in which it is decided about; None if it has one or no alternatives."""
    first = gang.first
    if not first.forms or _stated(gang) or not _may_choose(gang, cells):
        return None
    seen: list[Decision] = []
    for number in range(len(first.forms)):
        gang.take_form(number)
        seen.append(preview_beside(gang, guards, cells=cells, nodes=nodes, now=now))
        if isinstance(seen[-1], Place):
            break
    number = _best(seen, may_preempt=first.may_preempt)
    names = [name_form(one, first.alternatives) for one in range(len(seen))]
    refused = tuple(
        (name, fact_of(one.reason))
        for name, one in zip(names, seen, strict=True)
        if name != names[number] and not isinstance(one, Place)
    )
    why = "; ".join(f"{name}: {why}" for name, why in refused)
    gang.take_form(number, format_used(number, first.alternatives, why=why) if number else "")
    return TriedForms(form=names[number], refused=refused)


def _best(seen: Sequence[Decision], *, may_preempt: bool) -> int:
    """Return the number of the form to use; 0 if the gang has to wait in every form."""
    if isinstance(seen[-1], Place):
        return len(seen) - 1
    preempting = (number for number, one in enumerate(seen) if isinstance(one, Preempt))
    return next(preempting, 0) if may_preempt else 0
