"""Rows of admission decisions: what was asked for, what was found, and what was decided."""

import re
from collections.abc import Mapping
from typing import Final

from cli.log.mask.engine_rows import document
from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    dropped,
    each,
    fields,
    number,
    optional,
    text_of,
    tuple_of,
)
from cli.log.mask.structures import (
    class_name,
    group,
    pod_labels,
    sentence,
    type_name,
    uid,
    user,
    vc,
)

_PLACES: Final = re.compile(r"(?:[0-9]+(?:-[0-9]+)?(?:,|$))*")
_numbers: Final = each(number)


def _places(value: object, _: Pass, where: str) -> str:
    text = text_of(value, where)
    if not _PLACES.fullmatch(text):
        raise LeftOutError(where)
    return text


def _answer(value: object, now: Pass, where: str) -> object:
    """Keep whether a `when` holds, or mask why it has no result."""
    return value if isinstance(value, bool) else sentence(value, now, where)


ADMISSION_DETAILS: Final[Mapping[str, Mask]] = {
    "decision": uid,
    "user": user,
    "group": group,
    "vc": vc,
    "requestedClass": class_name,
    "class": class_name,
    "podClass": class_name,
    "risesTo": class_name,
    "exceeded": each(sentence),
    "leafCount": number,
}
_held: Final = fields(
    {
        "user": user,
        "group": group,
        "vc": vc,
        "class_name": class_name,
        "leaf_type": type_name,
        "rises_to": class_name,
        "raised_from": class_name,
        "each": optional(_numbers),
        **dict.fromkeys(
            (
                "is_high",
                "leaf_count",
                "places",
                "gang_size",
                "leaf_count_each",
                "cpu_millis",
                "memory_bytes",
            ),
            number,
        ),
    }
)
ADMISSION_INPUTS: Final[Mapping[str, Mask]] = {
    "policy": document,
    "owner": uid,
    "groups": each(group),
    "leafType": type_name,
    "labels": pod_labels,
    "late": _numbers,
    "alternatives": each(tuple_of(type_name, vc, number)),
    "shapes": dropped,
    "fixedClass": class_name,
    "highestClass": class_name,
    "usage": optional(_numbers),
    "used": _numbers,
    "held": _held,
    "over": each(_numbers),
    "notes": each(sentence),
    "hits": _numbers,
    "rules": _places,
    "when": each(tuple_of(number, class_name, _answer)),
    **dict.fromkeys(
        (
            "wording",
            "gangSize",
            "cpuMillis",
            "memoryBytes",
            "mayGrow",
            "isGroup",
            "isHelper",
            "memberLeafCount",
            "isAlone",
            "gangCpuMillis",
            "gangMemoryBytes",
            "ownLeafCount",
            "grows",
            "isRunning",
        ),
        number,
    ),
}
