"""Groups that the Queues document names and to which no gang is charged: warnings, no problems.

Gangs are charged to groups of Quotas documents only. A misspelt group, or one that only the API
server or the Identity document knows, takes no gang, and nobody could use what is reserved for it.
"""

from collections.abc import Collection, Iterator
from typing import Final

from policy.errors import Problem
from policy.queues.queues import Queues
from policy.wording import join_path, listing, quote

_MOST_GROUPS: Final = 8


def find_unknown_groups(queues: Queues, *, groups: Collection[str]) -> Iterator[Problem]:
    """Yield the places of names that are not among `groups`, those that have quotas."""
    known = sorted(groups)
    shown = listing(known[:_MOST_GROUPS]) + (" and others" if len(known) > _MOST_GROUPS else "")
    why = f"the groups with quotas are {shown}" if known else "no Quotas document has groups"
    for path, names in _named(queues):
        for name in sorted(set(names) - set(groups)):
            yield Problem(path, f"no gang is charged to group {quote(name)}: {why}")


def _named(queues: Queues) -> Iterator[tuple[str, Collection[str]]]:
    for place, level in enumerate(queues.levels):
        yield join_path(("levels", place, "who", "groups")), level.who.groups
    for name, members in queues.group_levels:
        yield join_path(("groupLevels", name)), members
    yield "fairShare.weights", queues.fair_share.weights
    for place, one in enumerate(queues.reservations):
        yield join_path(("reservations", place, "who", "groups")), one.who.groups
