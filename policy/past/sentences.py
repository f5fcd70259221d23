"""The effect of a policy in words: the warnings that a dry run of a document answers with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from policy.past.effect import PolicyEffect, Users
from policy.rules.decision import WARNING_CHARS
from policy.submission import ClassName
from policy.wording import count_of, listing, name, plain

PREFIX: Final = "cellgate: "
_NAMED_USERS: Final = 4
_NAMED_RULES: Final = 8
_HOUR: Final = 3600.0


def tell_effect(effect: PolicyEffect) -> list[str]:
    """Return the warnings, each short enough for kubectl."""
    return [plain(f"{PREFIX}{line}", limit=WARNING_CHARS) for line in _lines(effect)]


def _lines(effect: PolicyEffect) -> Iterator[str]:
    over = f"over the last {_length(effect.seconds)} ({count_of(effect.submissions, 'submission')})"
    if not effect.submissions:
        yield f"over the last {_length(effect.seconds)}, no submission is known to try it on"
        return
    if effect.is_none:
        yield f"{over}: no submission would have been decided otherwise"
    else:
        yield from (f"{over}: {one}" for one in _changes(effect))
    if effect.idle_rules:
        yield f"{over}: {_name_rules(effect.idle_rules)} would have had no effect"
    yield from _unknown(effect)


def _changes(effect: PolicyEffect) -> Iterator[str]:
    changes = [
        *(
            (users, f"more would have been lowered to {one}")
            for one, users in _by_class(effect.lowered)
        ),
        (effect.refused, "more would have been refused"),
        (effect.queued, "more would have waited for quota"),
        (effect.admitted, "fewer would have been refused or have waited for quota"),
        *(
            (users, f"more would have had the higher class {one}")
            for one, users in _by_class(effect.raised)
        ),
    ]
    for users, what in changes:
        if users:
            yield f"{count_of(sum(users.values()), 'gang')} {what} ({_name_users(users)})"


def _by_class(found: Mapping[ClassName, Users]) -> list[tuple[str, Users]]:
    return [(name(class_name), users) for class_name, users in sorted(found.items())]


def _unknown(effect: PolicyEffect) -> Iterator[str]:
    """Say what a play of the past cannot know."""
    parts = ["how users would have reacted"]
    if effect.assumed:
        gangs = count_of(effect.assumed, "gang")
        held = _length(effect.assumed_seconds)
        parts.append(f"how long {gangs} that never ran would hold leaf cells ({held} is assumed)")
    if effect.older:
        parts.append(f"{count_of(effect.older, 'submission')} logged by an earlier version")
    yield f"not known: {listing(parts)}; later raises and hours used before are not counted"


def _name_rules(numbers: Sequence[int]) -> str:
    rules = "rule" if len(numbers) == 1 else "rules"
    shown, rest = numbers[:_NAMED_RULES], len(numbers) - _NAMED_RULES
    more = f" and {rest} more" if rest > 0 else ""
    return f"{rules} {', '.join(map(str, shown))}{more}"


def _name_users(users: Users) -> str:
    """Name the users with the most gangs: `alice 7, bob 5 and 3 more users`."""
    ranked = sorted(users.items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{name(user)} {number}" for user, number in ranked[:_NAMED_USERS])
    rest = len(ranked) - _NAMED_USERS
    return f"{shown} and {count_of(rest, 'more user')}" if rest > 0 else shown


def _length(seconds: float) -> str:
    if seconds >= _HOUR:
        return f"{round(seconds / _HOUR)} h"
    return f"{max(1, round(seconds / 60))} min"
