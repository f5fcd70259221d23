"""Labels and annotations of ours that do not exist: a misspelt one has no effect, which is told."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

from kube import marks
from kube.values.objects import marks_of
from policy.admission.gang_decision import PREFIX
from policy.rules.decision import WARNING_CHARS
from policy.wording import plain

_MOST: Final = 5


def _named(ending: str) -> frozenset[str]:
    found = (value for name, value in vars(marks).items() if name.endswith(ending))
    return frozenset(value for value in found if str(value).startswith(marks.DOMAIN))


_LABELS: Final = _named("_LABEL") | {marks.RECLAIMED_MARK}
_ANNOTATIONS: Final = _named("_ANNOTATION") | {marks.RECLAIMED_MARK}


def warn_of_unknown(obj: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a warning for each mark of an object that has no effect."""
    lines = (plain(f"{PREFIX}{line}", limit=WARNING_CHARS) for line in _unknown(obj))
    return tuple(islice(lines, _MOST))


def _unknown(obj: Mapping[str, Any]) -> Iterator[str]:
    for key in marks_of(obj, "labels"):
        if key.startswith(marks.DOMAIN) and key not in _LABELS:
            yield _no_effect(key, "label", known=_LABELS, other="annotation", others=_ANNOTATIONS)
    for key in marks_of(obj, "annotations"):
        if key.startswith(marks.DOMAIN) and key not in _ANNOTATIONS:
            yield _no_effect(key, "annotation", known=_ANNOTATIONS, other="label", others=_LABELS)


def _no_effect(
    key: str, kind: str, *, known: frozenset[str], other: str, others: frozenset[str]
) -> str:
    if key in others:
        return f"{key} has no effect as {kind}: write it as {other}"
    names = sorted(one.removeprefix(marks.DOMAIN) for one in known)
    near = get_close_matches(key.removeprefix(marks.DOMAIN), names, n=1)
    meant = f"; is {marks.DOMAIN}{near[0]} meant?" if near else ""
    return f"{kind} {key} is not known and has no effect{meant}"
