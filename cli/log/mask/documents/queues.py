"""The Queues document: levels, who they take, windows. Pure."""

import re
from typing import Final

from cli.log.mask.documents.conditions import formula, when
from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    each,
    fields,
    mapping,
    moment,
    number,
    text_of,
    tuple_of,
    words,
)
from cli.log.mask.queue_rows import level
from cli.log.mask.structures import (
    class_name,
    group,
    key,
    label_value,
    node,
    sentence,
    type_name,
    user,
    vc,
    window,
)
from policy.documents.models import API_VERSION
from policy.parser import DocumentKind
from policy.queues.factors import FactorName
from policy.queues.queues import DefragmentationMode, Strategy

_DURATION: Final = re.compile(r"[-+0-9.]{1,20}[a-z]{0,3}")


def _duration(value: object, now: Pass, where: str) -> object:
    """Keep a duration."""
    if isinstance(value, str):
        if not _DURATION.fullmatch(value):
            raise LeftOutError(where)
        return value
    return number(value, now, where)


def _class_or_default(value: object, now: Pass, where: str) -> object:
    return value if value == "default" else class_name(text_of(value, where), now, where)


_who: Final = fields(
    {
        "classes": each(class_name),
        "groups": each(group),
        "users": each(user),
        "vcs": each(vc),
        "when": when,
    }
)
_level: Final = fields(
    {
        "name": level,
        "who": _who,
        "strategy": words(*Strategy),
        "worth": mapping(words(*FactorName), _duration),
        "formula": formula,
        "promoteAfter": _duration,
    }
)


def _levels_of(member: Mask) -> Mask:
    return each(tuple_of(level, each(member)))


queues_document: Final = fields(
    {
        "apiVersion": words(API_VERSION),
        "kind": words(DocumentKind.QUEUES),
        "levels": each(_level),
        "userLevels": _levels_of(user),
        "groupLevels": _levels_of(group),
        "fairShare": fields(
            {
                "halfLife": _duration,
                "weights": mapping(group, number),
                "entry": words("predicted", "none"),
            }
        ),
        "runTime": fields(
            {
                "cap": _duration,
                "longest": mapping(_class_or_default, _duration),
                "unknown": words("asked", "cap"),
                "enforce": number,
            }
        ),
        "reservation": fields(
            {
                "perPool": number,
                "after": _duration,
                "backfillQuantile": number,
                "sticky": number,
            }
        ),
        "preemption": fields({"minimumRun": _duration, "grace": _duration}),
        "reservations": each(
            fields(
                {
                    "name": window,
                    "vc": vc,
                    "leafType": type_name,
                    "members": number,
                    "leafCells": number,
                    "who": _who,
                    "from": moment,
                    "until": moment,
                }
            )
        ),
        "maintenance": each(
            fields(
                {
                    "name": window,
                    "nodes": each(node),
                    "nodeLabels": mapping(key, label_value),
                    "from": moment,
                    "until": moment,
                    "reason": sentence,
                    "notice": _duration,
                    "opportunistic": words("drain", "allow"),
                }
            )
        ),
        "defragmentation": fields({"mode": words(*DefragmentationMode), "maximumCost": _duration}),
        "expectedStart": fields({"coverage": number, "samples": number}),
    }
)
