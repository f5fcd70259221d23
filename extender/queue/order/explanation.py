"""Sentences about the place of a gang: what its rank adds up from, and what puts another ahead.

Each sentence adds up: the parts give the credit, and the difference of two ranks is how much longer
the gang behind would have to have waited. Texts change only with the rank, not with time.
"""

from collections.abc import Iterator

from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import FORMULA
from extender.queue.order.standing import RankPart, Standing
from policy.classes import MAX_CELL_PRIORITY, OPPORTUNISTIC
from policy.queues.durations import format_duration
from policy.queues.factors import FactorName
from policy.queues.queues import DEFAULT_LONGEST, Queues
from policy.wording import listing, moment

OTHERS = "a gang of another user"
"""In place of a name that a user may not read."""


def explain_standing(
    standing: Standing, facts: QueueFacts, queues: Queues, *, viewer: str | None = None
) -> list[str]:
    """Say what the rank of a gang adds up from; a viewer is told nothing of other users' gangs."""
    place = standing.place_of(facts)
    is_own = viewer in (None, place.user)
    parts = standing.parts if is_own else ()
    return [
        *_swap(standing, is_own=is_own),
        *_level(standing, queues),
        *(_part(one, place, queues) for one in parts),
    ]


def _swap(standing: Standing, *, is_own: bool) -> Iterator[str]:
    swap = standing.swap
    if swap is None:
        return
    user, other = swap.request.describe_user(), f"gang {swap.request.other}" if is_own else OTHERS
    if swap.place is None:
        yield f"{user} asked to swap it with {other}; that is not in force: {swap.why_not}"
    else:
        yield f"{user} swapped it with {other}: it has the place of that gang"


def _level(standing: Standing, queues: Queues) -> Iterator[str]:
    if standing.is_promoted:
        yield (
            f"it has waited long enough in level {standing.own_level_name} to be ranked in level "
            f"{standing.level_name}"
        )
    elif len(queues.levels) > 1:
        yield f"it is in level {standing.level_name}"
    is_swapped = standing.swap is not None and standing.swap.place is not None
    asked = f"its rank is when {'that gang' if is_swapped else 'it'} asked"
    if standing.credit:
        yield f"{asked}, minus {format_duration(standing.credit)} in all"
    else:
        yield asked


def _charged_group(facts: QueueFacts) -> str:
    none = "no group is charged for it: the level of a group"
    return f"the level of group {facts.group}" if facts.group else none


def _part(part: RankPart, facts: QueueFacts, queues: Queues) -> str:
    given = format_duration(part.seconds)
    of = f"of at most {format_duration(part.worth)}"
    match part.factor:
        case FactorName.CLASS:
            return f"class {facts.class_name or facts.priority} is worth {given} {of}"
        case FactorName.USER_LEVEL:
            return f"the level of user {facts.user} is worth {given} {of}"
        case FactorName.GROUP_LEVEL:
            return f"{_charged_group(facts)} is worth {given} {of}"
        case FactorName.FAIR_SHARE:
            lost = format_duration(part.worth - part.seconds)
            return f"recent use of {facts.user} costs {lost}: {given} {of} are left"
        case FactorName.SHORT_RUN:
            return f"{_expected(facts, queues)} is worth {given} {of}"
        case FactorName.SMALL_GANG:
            return f"asking for {facts.leaf_cells} leaf cells is worth {given} {of}"
        case FactorName.ASKED:
            limit = facts.run_time.limit
            shown = "no limit" if limit is None else f"a limit of {format_duration(limit)}"
            return f"asking for {shown} is worth {given} {of}"
        case FactorName.FILL:
            return f"the use of VC {facts.vc} is worth {given} {of}"
        case FactorName.START_BY:
            when = facts.start_by
            shown = "no wished start" if when is None else f"a start by {moment(when)}"
            return f"asking for {shown} is worth {given} {of}"
        case _:
            assert part.factor == FORMULA, "all factors are named above"
            return _formula(part, given=f"{given} {of}")


def _formula(part: RankPart, *, given: str) -> str:
    if part.failure:
        return f"the formula of the level cannot be evaluated for it: {part.failure}"
    read = [f"{factor} {value:.4g}" for factor, value in part.factors]
    values = f", from {listing(read)}" if read else ""
    return f"the formula of the level gives {given}{values}"


def _expected(facts: QueueFacts, queues: Queues) -> str:
    known = facts.run_time
    if known.median is not None:
        return f"an expected run of {format_duration(known.median)}"
    if known.limit is not None and queues.run_time.unknown == "asked":
        return f"a run without history and with a limit of {format_duration(known.limit)}"
    return "a run without history"


def explain_ahead(behind: Standing, ahead: Standing, *, name: str) -> str:
    """Say by how much another gang is ahead."""
    if ahead.level != behind.level:
        return f"{name} is ahead: it is in level {ahead.level_name}"
    by = behind.rank - ahead.rank
    if by == 0 and ahead.asked < behind.asked:
        return f"{name} is ahead: both have the same rank, and it asked earlier"
    if by == 0 and ahead.asked == behind.asked:
        return (
            f"{name} is ahead: both have the same rank and asked at the same time, and of these "
            "gangs the order of names decides"
        )
    if by <= 0:
        return f"{name} is ahead once: this gang did not use the places that it was given before"
    return f"{name} is ahead by {format_duration(by)}"


def explain_bound(
    standing: Standing, facts: QueueFacts, queues: Queues, *, awaits_quota: bool = False
) -> list[str]:
    """Say how long newer gangs can go ahead, and why there is no bound on the wait, if so."""
    if awaits_quota:
        return [
            "no bound on the wait for quota: gangs for which the limits have room are charged "
            "meanwhile, also if they ask later"
        ]
    places = {one.name: place for place, one in enumerate(queues.levels)}
    own = places.get(standing.own_level_name)
    if own is None:
        return ["the Queues document has changed, and the gang is about to be ranked by it"]
    settled = queues.settles_after(own)
    when = f"more than {format_duration(settled)} later" if settled else "later"
    return [f"gangs that ask {when} are never ahead of it", *_unbounded(facts, queues)]


def _unbounded(facts: QueueFacts, queues: Queues) -> Iterator[str]:
    if facts.priority == OPPORTUNISTIC:
        yield "no bound on the wait: an opportunistic gang starts when promised cells are not used"
        return
    rules = queues.run_time
    if DEFAULT_LONGEST not in rules.longest:  # it waits for the ends of gangs of every class
        yield "no bound on the wait: `runTime.longest` has no `default`: not all runs have a limit"
    elif not rules.enforce:
        yield "no bound on the wait: `runTime.longest` is assumed and not enforced"
    if not queues.reservation.per_pool or not queues.reservation.sticky:
        yield "no bound on the wait: there are no sticky reservations"
    if facts.priority < MAX_CELL_PRIORITY:
        yield (
            f"no bound on the wait while gangs of a higher class preempt in VC {facts.vc}: "
            "reservations do not keep them off"
        )
