"""Policies as admission rows refer to them: all documents in one JSON text. Pure.

Quotas, groups and access to VCs are compared by equality, so their names are masked like all
others. Rules look at names by regular expressions and CEL, which pseudonyms cannot satisfy: these
are replaced by texts that only say so, and the rows have what was found. Classes are few: a regular
expression for classes is replaced by the list of those that it matches.

Documents that no replay of an admission reads are left out.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from cli.log.mask.documents.cluster import mask_cluster_data
from cli.log.mask.documents.queues import queues_document
from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    dropped,
    each,
    fields,
    mapping,
    moment,
    number,
    object_of,
    optional,
    text_of,
    words,
)
from cli.log.mask.names import Kind
from cli.log.mask.structures import class_name, group, sentence, type_name, user, vc
from policy.documents.models import API_VERSION
from policy.parser import DocumentKind
from policy.quotas.quota_table import FAIL, QUEUE
from policy.rules.expression import parse_expression
from policy.rules.patterns import parse_pattern
from policy.rules.rule_table import RETAIN

_ANY_NAME: Final = "masked"
"""Instead of a regular expression for names."""
_WHEN: Final = "user == 'masked'"
_WHEN_WITH_USAGE: Final = "user == 'masked' && occupied >= 0"
"""Instead of a CEL expression: whether it reads usage makes a difference of its own."""
_COMPARISON: Final = re.compile(r"(?:>=|<=|==|!=|>|<) -?[0-9]{1,18}")
_AMOUNT: Final = re.compile(r"[0-9.]{1,20}(?:[a-zA-Z]{1,2}|[eE][0-9]{1,2})?")


def _pattern(value: object, _: Pass, where: str) -> str | None:
    """Replace a regular expression for names."""
    return None if value is None else text_of(value, where) and _ANY_NAME


def _class_pattern(value: object, now: Pass, where: str) -> str | None:
    """List the classes that a regular expression matches."""
    if value is None:
        return None
    try:
        pattern = parse_pattern(text_of(value, where))
    except ValueError as exc:
        raise LeftOutError(where) from exc
    known = {"": "", **now.names.known(Kind.CLASS)}
    found = sorted(masked for name, masked in known.items() if pattern.found_in(name))
    return f"^({'|'.join(map(re.escape, found))})$" if found else f"^{_ANY_NAME}$"


def _when(value: object, _: Pass, where: str) -> str | None:
    if value is None:
        return None
    try:
        expression = parse_expression(text_of(value, where))
    except ValueError as exc:
        raise LeftOutError(where) from exc
    return _WHEN_WITH_USAGE if expression.needs_usage else _WHEN


def _matching(pattern: re.Pattern[str]) -> Mask:
    """Keep a text of a form without names, a number, or null."""

    def mask(value: object, now: Pass, where: str) -> object:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        return number(value, now, where)

    return mask


def _class_or(*known: str) -> Mask:
    """Mask the name of a class, unless it is a word of the document."""
    return lambda value, now, where: value if value in known else class_name(value, now, where)


def _user_or_group(value: object, now: Pass, where: str) -> str:
    """Mask a name that may be a user's or a group's."""
    text = text_of(value, where)
    is_group = text in now.names.known(Kind.GROUP) or text.startswith("system:serviceaccounts")
    return str((group if is_group else user)(text, now, where))


_comparison: Final = _matching(_COMPARISON)
_amount: Final = _matching(_AMOUNT)
_limits: Final = fields(
    {
        "leafCells": number,
        "leafCellsHigh": number,
        "gangs": number,
        "cpu": _amount,
        "memory": _amount,
        "leafCellHours": fields(dict.fromkeys(("day", "week", "month", "total"), number)),
        "byLeafType": mapping(type_name, number),
    }
)
_users: Final = each(user)
_groups: Final = each(group)


def _document(kind: DocumentKind, **known: Mask) -> Mask:
    return fields({"apiVersion": words(API_VERSION), "kind": words(kind), **known})


_rule: Final = fields(
    {
        "user": _pattern,
        "group": _pattern,
        "vc": _pattern,
        "priority": _class_pattern,
        "current": _comparison,
        "occupied": _comparison,
        "occupiedHigh": _comparison,
        "occupiedLow": _comparison,
        "when": _when,
        "then": _class_or(RETAIN, FAIL),
        "note": sentence,
    }
)
_quota_group: Final = fields(
    {
        "name": group,
        "admins": _users,
        "limits": _limits,
        "over": _class_or(FAIL, QUEUE),
        "users": each(fields({"name": user, "limits": _limits})),
        "eachUser": optional(fields({"limits": _limits})),
        "billing": optional(
            fields(
                {
                    "identities": each(_user_or_group),
                    "most": _limits,
                    "least": _limits,
                    "longestDays": number,
                }
            )
        ),
    }
)
_DOCUMENTS: Final[Mapping[str, Mask]] = {
    DocumentKind.CLASSES: _document(
        DocumentKind.CLASSES,
        classes=each(fields({"name": class_name, "cellPriority": number, "high": number})),
        default=class_name,
    ),
    DocumentKind.RULES: _document(
        DocumentKind.RULES, rules=each(_rule), impossible=words("warn", "refuse")
    ),
    DocumentKind.QUOTAS: each(_document(DocumentKind.QUOTAS, groups=each(_quota_group))),
    DocumentKind.IDENTITY: _document(
        DocumentKind.IDENTITY,
        groups=mapping(group, _users),
        vcs=mapping(vc, fields({"groups": _groups, "users": _users})),
        trustedControllers=_users,
        templates=dropped,
    ),
    DocumentKind.BILLING: _document(
        DocumentKind.BILLING,
        limits=each(
            fields(
                {
                    "group": group,
                    "user": user,
                    "limits": _limits,
                    "until": moment,
                    "reason": sentence,
                }
            )
        ),
    ),
    DocumentKind.CLUSTER: mask_cluster_data,
    DocumentKind.SHAPING: dropped,
    DocumentKind.QUEUES: queues_document,
}


def mask_policy(content: str, now: Pass, where: str) -> str:
    """Mask the content of a policy. Raises LeftOutError if it is none."""
    try:
        data: Any = orjson.loads(content)
    except orjson.JSONDecodeError as exc:
        raise LeftOutError(where) from exc
    masked = fields(_DOCUMENTS)(object_of(data, where), now, where)
    return orjson.dumps(masked, option=orjson.OPT_SORT_KEYS).decode()
