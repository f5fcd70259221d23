"""An exceeded limit in words: what is held, asked for and allowed, and what would fit."""

from typing import Final

from policy.quotas.limits import Exceeded, Measure, Scope
from policy.wording import are, count_of, name

_PERIODS: Final = {
    Measure.HOURS_DAY: ("today", "day"),
    Measure.HOURS_WEEK: ("this week", "week"),
    Measure.HOURS_MONTH: ("this month", "month"),
}


def describe_excess(exceeded: Exceeded) -> str:
    """Describe an exceeded limit, and what would fit, as sentences."""
    return f"{_capital(describe_excess_shortly(exceeded))}.{_way_out(exceeded)}"


def describe_excess_shortly(exceeded: Exceeded) -> str:
    """Describe an exceeded limit as part of a sentence."""
    limit, who = exceeded.limit, _who(exceeded.limit.scope)
    if limit.measure in _PERIODS:
        when, period = _PERIODS[limit.measure]
        used = f"{who} used {exceeded.used:.1f} leaf-cell-hours {when}"
        return f"{used}; the limit is {limit.most:g} a {period}"
    if limit.measure is Measure.GANGS:
        gangs = count_of(round(exceeded.used), "gang")
        return f"{who} has {gangs}; the limit is {limit.most:g}"
    cells = count_of(round(exceeded.used), "leaf cell")
    asked = f"{exceeded.asked} more {are(exceeded.asked)} asked for"
    return f"{who} holds {cells}{_where(exceeded)} and {asked}; the limit is {limit.most:g}"


def _where(exceeded: Exceeded) -> str:
    match exceeded.limit.measure:
        case Measure.LEAF_CELLS_HIGH:
            return " in high classes"
        case Measure.LEAF_CELLS_OF_TYPE:
            return f" of type {name(exceeded.limit.leaf_type or '')}"
        case _:
            return ""


def _way_out(exceeded: Exceeded) -> str:
    """Say what would fit, if the numbers show it."""
    measure, most = exceeded.limit.measure, exceeded.limit.most
    if measure in _PERIODS:
        return f" It would fit in the next {_PERIODS[measure][1]} (UTC)." if most > 0 else ""
    if measure is Measure.GANGS:
        return _way_out_of_gangs(round(exceeded.used) + 1 - round(most)) if most > 0 else ""
    room = round(most - exceeded.used)
    if room > 0:
        return f" A gang of {count_of(room, 'leaf cell')} would fit."
    if exceeded.asked > most:
        return ""
    missing = round(exceeded.used) + exceeded.asked - round(most)
    return f" It would fit once {count_of(missing, 'leaf cell')} {are(missing)} free again."


def _way_out_of_gangs(missing: int) -> str:
    have = "has" if missing == 1 else "have"
    return f" It would fit once {count_of(missing, 'gang')} {have} ended."


def _who(scope: Scope) -> str:
    group = f"group {name(scope.group or '')}"
    if scope.user is None:
        return group
    user = name(scope.user)
    return f"{user} in {group}" if scope.group else user


def _capital(text: str) -> str:
    """Begin a sentence with a capital letter, unless it begins with a user's name."""
    return f"G{text[1:]}" if text.startswith("group ") else text
