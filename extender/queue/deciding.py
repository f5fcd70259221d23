"""Places for several members, one after the other."""

from collections.abc import Collection, Sequence
from math import inf

from extender.cells.model import Decision, MemberRequest, Place, Preempt, Reject, Wait
from extender.queue.needs import Cells
from policy.submission import NodeName


def decide_all(
    cells: Cells,
    requests: Sequence[MemberRequest],
    candidates: Collection[NodeName],
    *,
    is_whole: bool,
    now: float,
) -> list[Decision]:
    """Place one member after the other; the first finds room for all, the others take it.

    Nobody is asked about after one who preempts or is wrong. Where one has to wait, smaller ones
    may still have a place, if their gang may run without him.
    """
    decisions: list[Decision] = []
    too_large = inf
    for request in requests:
        if request.leaf_count >= too_large:
            continue
        decision = cells.decide(request, candidate_nodes=candidates, now=now)
        decisions.append(decision)
        if isinstance(decision, Wait) and not is_whole:
            too_large = request.leaf_count
        elif not isinstance(decision, Place):
            break
        elif decision.others:
            places = (decision.placement, *decision.others)
            candidates = dict.fromkeys(place.node for place in places)
    return decisions


def refusal(decisions: Sequence[Decision]) -> Wait | Reject | Preempt | None:
    """What those have to be told who have no place: the last is the gravest."""
    refused = (one for one in reversed(decisions) if not isinstance(one, Place))
    return next(refused, None)
