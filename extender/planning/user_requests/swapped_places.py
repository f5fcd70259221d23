"""The place that a gang keeps after a swap, as an annotation of its pods for the next leader."""

from typing import Final

import orjson

from extender.queue.forecast.model import RunTime
from extender.queue.order.facts import QueueFacts
from policy.queues.swaps import SwapRequest, format_swap, read_swap
from policy.submission import LeafType, VcName
from policy.topology import PinnedCellId

_TEXTS: Final = ("user", "vc", "class")
_NUMBERS: Final = ("priority", "leafCells", "asked")


def format_place(request: SwapRequest, place: QueueFacts) -> str:
    """Write what a gang is ranked by: the facts of the gang that it was swapped with."""
    found = {
        "swap": format_swap(request),
        "user": place.user,
        "group": place.group,
        "vc": place.vc,
        "class": place.class_name,
        "priority": place.priority,
        "leafCells": place.leaf_cells,
        "leafType": place.leaf_type,
        "pinnedCell": place.pinned,
        "asked": place.asked,
        "expectedSeconds": place.run_time.median,
        "limitSeconds": place.run_time.limit,
        "startBy": place.start_by,
    }
    return orjson.dumps({key: value for key, value in found.items() if value is not None}).decode()


def read_place(text: str) -> tuple[SwapRequest, QueueFacts] | None:
    """Read what `format_place` writes; None if it is something else."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or not _is_complete(found):
        return None
    request = read_swap(str(found.get("swap", "")))
    if request is None:
        return None
    return request, QueueFacts(
        gang=request.other,
        user=found["user"],
        group=_text(found.get("group")),
        vc=VcName(found["vc"]),
        class_name=found["class"],
        priority=int(found["priority"]),
        leaf_cells=int(found["leafCells"]),
        leaf_type=LeafType(_text(found.get("leafType")) or "") or None,
        pinned=PinnedCellId(_text(found.get("pinnedCell")) or "") or None,
        asked=float(found["asked"]),
        start_by=_number(found.get("startBy")),
        run_time=RunTime(
            median=_number(found.get("expectedSeconds")), limit=_number(found.get("limitSeconds"))
        ),
    )


def _is_complete(found: dict[str, object]) -> bool:
    texts = all(isinstance(found.get(key), str) for key in _TEXTS)
    return texts and all(_number(found.get(key)) is not None for key in _NUMBERS)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
