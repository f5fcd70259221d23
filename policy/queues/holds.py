"""Holds: a gang that its owner or an admin keeps out of the queue for a while.

A hold is one line: a reason, and optionally what lifts it: `data is copied; until=<time>` or `runs
second; after=lab/bert-1`. Who held the gang, and since when, is a second line, which only
the webhook writes: `owner 2026-11-18T12:00:00+00:00 alice`. A gang that was created with a hold is
held since its `creation`.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from policy.errors import RequestError
from policy.identity.ownership import Editor
from policy.queues.moments import parse_seconds
from policy.quotas.quota_table import QuotaTable
from policy.wording import describe, moment, name, plain, quote

_UNTIL: Final = "until="
_AFTER: Final = "after="
_CREATION: Final = "creation"
_LONGEST: Final = 256
_EXAMPLE: Final = "2026-11-20T08:00:00Z"
_MISSPELT: Final = re.compile(r"(until|after) *[=:]", re.IGNORECASE)
"""What a part of a hold begins with that says when it ends, but is not read."""
_UNKNOWN: Final = re.compile(r"[A-Za-z]+=")
"""What a part after the reason begins with that means to say when it ends."""
_NAMESPACE: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


class HoldRole(StrEnum):
    """As what a user changes a gang that waits."""

    OWNER = "owner"
    GROUP_ADMIN = "group-admin"
    ADMIN = "admin"


STRENGTH: Final = {HoldRole.OWNER: 0, HoldRole.GROUP_ADMIN: 1, HoldRole.ADMIN: 2}
"""What a user of one role did, a user of a weaker one may not undo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What a hold says: why, and what lifts it beside its removal."""

    reason: str
    until: float | None = None
    """In seconds since 1970."""
    after: tuple[str, str] | None = None
    """Namespace and name of the gang whose end lifts it."""

    @property
    def is_open(self) -> bool:
        """Whether only its removal lifts it."""
        return self.until is None and self.after is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The user who holds a gang."""

    role: HoldRole
    user: str
    since: float | None = None
    """In seconds since 1970; None: since the pod was created."""

    @property
    def strength(self) -> int:
        """Of two holders, the stronger one decides."""
        return STRENGTH[self.role]


def parse_hold(text: str) -> Hold:
    """Read a hold. Raises ValueError in plain words."""
    if len(text) > _LONGEST:
        raise ValueError(f"must have at most {_LONGEST} characters")
    parts = [part.strip() for part in text.split(";")]
    lifts = [part for part in parts if part.startswith((_UNTIL, _AFTER))]
    others = [part for part in parts if part and part not in lifts]
    misspelt = next((found[1].lower() for one in others if (found := _MISSPELT.match(one))), None)
    if misspelt is not None:
        raise ValueError(f"must write {misspelt}= without spaces and in small letters")
    unknown = next((found[0] for one in parts[1:] if (found := _UNKNOWN.match(one))), None)
    if unknown not in (None, _UNTIL, _AFTER):
        raise ValueError(f"{unknown} is neither {_UNTIL} nor {_AFTER}")
    reason = "; ".join(others)
    if not reason:
        raise ValueError('must give a reason, such as "data is copied"')
    if len(lifts) > 1:
        raise ValueError(f"must have one of {_UNTIL} and {_AFTER}, and only once")
    lift = lifts[0] if lifts else ""
    told = plain(reason, limit=_LONGEST)
    if lift.startswith(_UNTIL):
        return Hold(reason=told, until=_parse_time(lift.removeprefix(_UNTIL)))
    if lift.startswith(_AFTER):
        return Hold(reason=told, after=_parse_gang(lift.removeprefix(_AFTER)))
    return Hold(reason=told)


def format_hold(hold: Hold) -> str:
    """Write a hold as `parse_hold` reads it."""
    if hold.until is not None:
        return f"{hold.reason}; {_UNTIL}{moment(hold.until)}"
    return hold.reason if hold.after is None else f"{hold.reason}; {_AFTER}{'/'.join(hold.after)}"


def read_hold(text: str) -> Hold:
    """Read a hold that may not have been checked: what is wrong with it counts as its reason."""
    try:
        return parse_hold(text)
    except ValueError:
        return Hold(reason=plain(text, limit=_LONGEST) or "no reason is given")


def _parse_time(text: str) -> float:
    found = parse_seconds(text)
    if found is None:
        raise ValueError(f"{_UNTIL} must be a time such as {_EXAMPLE}, not {describe(text)}")
    return found


def _parse_gang(text: str) -> tuple[str, str]:
    namespace, _, gang = text.partition("/")
    if not (_NAMESPACE.fullmatch(namespace) and gang) or any(char.isspace() for char in text):
        raise ValueError(f"{_AFTER} must be <namespace>/<gang>, not {describe(text)}")
    return namespace, gang


def format_holder(holder: Holder) -> str:
    """Write who holds a gang, and since when."""
    since = _CREATION if holder.since is None else moment(holder.since)
    return f"{holder.role} {since} {holder.user}"


def read_holder(text: str, *, owner: str) -> Holder:
    """Read who holds a gang; the `owner` if that is not stated."""
    role, _, rest = text.partition(" ")
    since, _, user = rest.partition(" ")
    if role not in tuple(HoldRole) or not user:
        return Holder(role=HoldRole.OWNER, user=owner)
    try:
        at = None if since == _CREATION else datetime.fromisoformat(since).timestamp()
    except ValueError:
        at = None
    return Holder(role=HoldRole(role), user=user, since=at)


def check_holder(
    editor: Editor,
    *,
    owner: str,
    group: str | None,
    quotas: QuotaTable,
    admins: tuple[str, ...],
    held_by: Holder | None,
) -> HoldRole:
    """Return as what a user may change the hold of a gang. Raises RequestError.

    `held_by` is the user who holds it now. A hold is lifted by its holder, or by a user of the same
    role or a stronger one.
    """
    roles = find_roles(editor, owner=owner, group=group, quotas=quotas, admins=admins)
    if not roles:
        raise RequestError.at("", f"{only_by(owner, group)} may hold or release it")
    if held_by is not None and STRENGTH[roles[-1]] < held_by.strength:
        raise RequestError.at("", f"{describe_holder(held_by)} holds it: {lifted_by(held_by)}")
    return roles[0]


def find_roles(
    editor: Editor,
    *,
    owner: str,
    group: str | None,
    quotas: QuotaTable,
    admins: tuple[str, ...],
) -> list[HoldRole]:
    """Return as what a user may change a gang, the weakest role first."""
    roles = []
    if editor.user == owner:
        roles.append(HoldRole.OWNER)
    if group is not None and group in quotas.administered_by(editor.user):
        roles.append(HoldRole.GROUP_ADMIN)
    if editor.is_any_of(admins):
        roles.append(HoldRole.ADMIN)
    return roles


def only_by(owner: str, group: str | None) -> str:
    """Say which users may change a gang."""
    admin = f", an admin of group {name(group)}" if group else ""
    return f"only the owner {quote(owner)}{admin} or a policy admin"


def describe_holder(holder: Holder) -> str:
    """Say who holds a gang."""
    words = {
        HoldRole.OWNER: "its owner",
        HoldRole.GROUP_ADMIN: "the group's admin",
        HoldRole.ADMIN: "the policy admin",
    }
    return f"{words[holder.role]} {name(holder.user)}"


def lifted_by(holder: Holder) -> str:
    """Say which users may lift a hold."""
    return {
        HoldRole.OWNER: "the owner, an admin of the owner's group or a policy admin may lift that",
        HoldRole.GROUP_ADMIN: "an admin of the owner's group or a policy admin may lift that",
        HoldRole.ADMIN: "a policy admin may lift that",
    }[holder.role]
