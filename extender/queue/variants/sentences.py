"""Sentences about variants and windows, for their readers. Times are those of the answer."""

from collections.abc import Callable
from typing import Final

from extender.queue.variants.model import ChangeKind, StartKind, Variant, Variants
from extender.queue.variants.start_windows import WindowShape
from policy.submission import GangKey
from policy.wording import count_of

ShowTime = Callable[[float], str]
ShowGang = Callable[[GangKey], str]

_IF_ENDS: Final = "if the gangs that run end as expected"
_NOT_AHEAD: Final = "gangs ahead of it in the queue are not considered"


def variant_sentence(one: Variant, variants: Variants, *, show: ShowTime, name: ShowGang) -> str:
    """Say what is to be changed, and when the gang starts then."""
    return f"{_change(one)} {_start(one, variants, show=show, name=name)}"


def summary(variants: Variants, show: ShowTime) -> str:
    """Say what is known of the gang as it is, and whether any change helps."""
    if variants.starts_now:
        return "the gang starts as it is"
    known = "it is not known when the gang can start as it is"
    if variants.expected is not None:
        told = f"the gang can start at {show(variants.expected)} as it is, {_IF_ENDS}"
        known = f"{told}; {_NOT_AHEAD}"
    if variants.found:
        return known
    return f"{known}; no single change was found with which it starts earlier"


def _change(one: Variant) -> str:
    before, after = one.change.before, one.change.after
    match one.change.kind:
        case ChangeKind.LIMIT:
            return f"with activeDeadlineSeconds of at most {after}"
        case ChangeKind.LEAF_TYPE:
            return f"with leaf type {after} instead of {before}"
        case ChangeKind.VC:
            return f"in VC {after} instead of {before}"
        case ChangeKind.LEAF_CELLS:
            return f"with {count_of(int(after), 'leaf cell')} per member instead of {before}"
        case ChangeKind.MEMBERS:
            return f"with {count_of(int(after), 'member')} instead of {before}"


def _start(one: Variant, variants: Variants, *, show: ShowTime, name: ShowGang) -> str:
    if one.start is StartKind.PREEMPTING:
        victims = f"{count_of(one.victims, 'gang')} that it preempts {_have(one.victims)} ended"
        told = f"it starts once {victims}"
        return f"{told}{_deleted(one)}{_ending(one, show=show, name=name)}"
    if one.start is StartKind.EARLIER:
        return _earlier(one.expected or 0.0, variants, show)
    return f"it starts now{_deleted(one)}{_ending(one, show=show, name=name)}"


def _ending(one: Variant, *, show: ShowTime, name: ShowGang) -> str:
    if one.until is None:
        return ""
    when = f"when the maintenance window {one.window} begins"
    if one.reservation is not None:
        when = f"when its leaf cells are needed for {_owner(one.reservation, name)}"
    return f", and ends before {show(one.until)}, {when}"


def _owner(gang: GangKey, name: ShowGang) -> str:
    """Name a reservation: an advance reservation has no namespace."""
    if gang.namespace:
        return f"the reservation of {name(gang)}"
    return f"the advance reservation {gang.name}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _deleted(one: Variant) -> str:
    return " if this gang is deleted before" if one.takes_own else ""


def shape_sentence(one: WindowShape, *, show: ShowTime, name: ShowGang) -> str:
    """Say what can start, and under which condition."""
    cells = count_of(one.leaf_cells, "leaf cell")
    members = f"{count_of(one.members, 'member')}{' or more' if one.is_most else ''}"
    what = f"{members} with {cells} each" if one.members > 1 else f"{members} with {cells}"
    if one.victims:
        ended = f"{count_of(one.victims, 'opportunistic gang')} {_have(one.victims)} ended"
        return f"{what} can start once {ended}"
    if one.until is None:
        return f"{what} can start now, without a time limit"
    when = f"{what} can start now, and must end before {show(one.until)}, when"
    if one.reserved_for is None:
        return f"{when} the maintenance window {one.window} begins"
    return f"{when} leaf cells are needed for {_owner(one.reserved_for, name)}"


def _earlier(expected: float, variants: Variants, show: ShowTime) -> str:
    if variants.expected is None:
        return f"it can start at {show(expected)}, {_IF_ENDS}"
    saved = _rounded(variants.expected - expected)
    return (
        f"it can start at {show(expected)} instead of {show(variants.expected)}, about {saved} "
        f"earlier, {_IF_ENDS}"
    )


def _rounded(seconds: float) -> str:
    """Return a duration in the largest unit of which there are two or more."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds)} s"
