"""Reasons of decisions: their arguments by name, and the sentence that these make. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from cli.log.mask.fields import (
    LeftOutError,
    Mask,
    Pass,
    each,
    list_of,
    moment,
    number,
    object_of,
    text_of,
    tuple_of,
)
from cli.log.mask.structures import (
    cell_type,
    chain,
    form,
    gang_text,
    node,
    pinned,
    pod_text,
    resource,
    sentence,
    type_name,
    type_text,
    uid,
    user,
    vc,
    window,
)
from extender.cells.answers import for_forms
from extender.cells.model import MemberRequest, ReasonCode, TriedForms, Wait
from extender.cells.phrases import MEMBER_SIZES
from extender.cells.wording import WORDING, explain
from policy.submission import GangKey, PodUid

_SIZES: Final = re.compile(r"[0-9]+ x [0-9]+(?: and [0-9]+ x [0-9]+)*(?: and [0-9]+ smaller)?|")
_CHOICES: Final[Mapping[str, Mask]] = {
    ReasonCode.UNKNOWN_VC: vc,
    ReasonCode.UNKNOWN_PINNED_CELL: pinned,
    ReasonCode.UNKNOWN_LEAF_TYPE: type_name,
}
_ANY: Final = ("any", "none")
_COUNTS: Final = (
    "asked", "bad", "count", "free", "highest", "leaf_cells", "limit", "lowest", "member",
    "members", "minimum", "needed", "own", "priority", "promised", "room", "seconds", "short",
    "size", "total", "unused", "used",
)  # fmt: skip


def _any_of(inner: Mask) -> Mask:
    return lambda value, now, where: value if value in _ANY else inner(value, now, where)


def _count_or(inner: Mask) -> Mask:
    """Keep a number, and mask all else: two reasons use one name for different things."""
    return lambda value, now, where: value if isinstance(value, int) else inner(value, now, where)


def _sizes(value: object, _: Pass, where: str) -> str:
    text = text_of(value, where)
    if not _SIZES.fullmatch(text):
        raise LeftOutError(where)
    return text


_TERMS: Final[Mapping[str, Mask]] = {
    "VC": vc,
    "priority": number,
    "leaf type": _any_of(type_name),
    "pinned cell": _any_of(pinned),
    "gang minimum": _any_of(number),
    MEMBER_SIZES: _sizes,
}


def _difference(value: object, now: Pass, where: str) -> list[Any]:
    term, first, own = list_of(value, where)
    known = _TERMS.get(text_of(term, where))
    if known is None:
        raise LeftOutError(where)
    return [term, known(first, now, where), known(own, now, where)]


ARGUMENTS: Final[Mapping[str, Mask]] = {
    "gang": gang_text,
    "needs": each(each(number)),
    "leaf_type": type_name,
    "vc": vc,
    "pinned": pinned,
    "pods": each(tuple_of(pod_text, user, node, number)),
    "nodes": _count_or(each(node)),
    "quarantined": each(node),
    "node": node,
    "differences": each(_difference),
    "shortfall": each(tuple_of(number, number, cell_type, type_text)),
    "chain": chain,
    "victims": each(gang_text),
    "preemptors": each(gang_text),
    "uid": uid,
    "known": gang_text,
    "resource": resource,
    "reserved_for": gang_text,
    "window": window,
    "begins": moment,
    "ends": moment,
    "form": form,
    "refused": each(tuple_of(form, sentence)),
    **dict.fromkeys(_COUNTS, number),
}
"""What the arguments of the engine's reasons name."""


def mask_arguments(code: object, told: object, now: Pass, where: str) -> dict[str, Any]:
    """Mask the arguments of a reason."""
    known = {**ARGUMENTS, "choices": each(_CHOICES.get(str(code), sentence))}
    masked: dict[str, Any] = {}
    for argument, value in object_of(told, where).items():
        inside = f"{where}.{argument}"
        if argument not in known:
            raise LeftOutError(inside)
        masked[argument] = known[argument](value, now, inside)
    return masked


def write_sentence(code: str, arguments: Mapping[str, Any]) -> str | None:
    """Write the sentence of a reason in the current wording; None if there is none for it."""
    told = dict(arguments)
    name_of_form, refused = told.pop("form", None), told.pop("refused", ())
    try:
        decision = Wait(request=_ANY_REQUEST, reason=explain(ReasonCode(code), **told))
    except (ValueError, TypeError, LookupError, StopIteration, AttributeError):
        return None
    if name_of_form is None:
        return decision.reason.text
    tried = TriedForms(form=name_of_form, refused=tuple((one, why) for one, why in refused))
    return cast(Wait, for_forms(decision, tried)).reason.text


_ANY_REQUEST: Final = MemberRequest(
    member=PodUid(""), gang=GangKey("", ""), leaf_count=1, gang_leaf_counts=(1,)
)


def mask_reason(row: Mapping[str, Any], masked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sentence of a masked reason, written anew, and the version of its wording.

    It is left out where the row was written in other words: then only codes and arguments count.
    """
    wording, arguments = row.get("wording"), row.get("arguments")
    if wording != WORDING or not isinstance(arguments, Mapping):
        return {"wording": wording} if isinstance(wording, int) else {}
    is_ours = write_sentence(str(row.get("code")), arguments) == row.get("reason")
    text = write_sentence(str(row.get("code")), masked) if is_ours else None
    return {"reason": text or "", "wording": wording}
