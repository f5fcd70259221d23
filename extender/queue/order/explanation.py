"""Sentences about the place of a gang: what its rank adds up from, and what puts another ahead.

Each sentence adds up: the parts give the credit, and the difference of two ranks is how much longer
the gang behind would have to have waited. Texts change only with the rank, not with time.
"""

from collections.abc import Iterator

from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import FORMULA
from extender.queue.order.standing import RankPart, Standing
from policy.classes import OPPORTUNISTIC
from policy.queues.durations import format_duration
from policy.queues.factors import FactorName
from policy.queues.queues import Queues


def explain_standing(standing: Standing, facts: QueueFacts, queues: Queues) -> list[str]:
    """Say what the rank of a gang adds up from."""
    return [*_level(standing, queues), *(_part(one, facts, queues) for one in standing.parts)]


def _level(standing: Standing, queues: Queues) -> Iterator[str]:
    if standing.is_promoted:
        yield (
            f"it has waited long enough in level {standing.own_level_name} to be ranked in level "
            f"{standing.level_name}"
        )
    elif len(queues.levels) > 1:
        yield f"it is in level {standing.level_name}"
    if standing.parts:
        yield f"its rank is when it asked, minus {format_duration(standing.credit)} in all"
    else:
        yield "its rank is when it asked"


def _part(part: RankPart, facts: QueueFacts, queues: Queues) -> str:
    given = format_duration(part.seconds)
    of = f"of at most {format_duration(part.worth)}"
    match part.factor:
        case FactorName.CLASS:
            return f"class {facts.class_name or facts.priority} is worth {given} {of}"
        case FactorName.USER_LEVEL:
            return f"the level of user {facts.user} is worth {given} {of}"
        case FactorName.GROUP_LEVEL:
            return f"the level of group {facts.group or 'none'} is worth {given} {of}"
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
        case _:
            assert part.factor == FORMULA, "all factors are named above"
            return f"the formula of the level gives {given} {of}"


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
    if by <= 0:
        return f"{name} is ahead once: this gang did not use the places that it was given before"
    return f"{name} is ahead by {format_duration(by)}"


def explain_bound(standing: Standing, facts: QueueFacts, queues: Queues) -> list[str]:
    """Say how long newer gangs can go ahead, and why there is no bound on the wait, if so."""
    own = next(
        place for place, one in enumerate(queues.levels) if one.name == standing.own_level_name
    )
    settled = queues.settles_after(own)
    when = f"more than {format_duration(settled)} later" if settled else "later"
    return [f"gangs that ask {when} are never ahead of it", *_unbounded(facts, queues)]


def _unbounded(facts: QueueFacts, queues: Queues) -> Iterator[str]:
    if facts.priority == OPPORTUNISTIC:
        yield "no bound on the wait: an opportunistic gang starts when promised cells are not used"
        return
    rules = queues.run_time
    if rules.longest_of(facts.class_name) is None:
        yield "no bound on the wait: `runTime.longest` does not say how long gangs run"
    elif not rules.enforce:
        yield "no bound on the wait: `runTime.longest` is assumed and not enforced"
    if not queues.reservation.per_pool or not queues.reservation.sticky:
        yield "no bound on the wait: there are no sticky reservations"
