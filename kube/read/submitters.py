"""The submitter of a pod, as the template webhook stamps it on the pod template.

The groups are a JSON list of names, sorted and without repetition, so that stamps can be compared
as text: `["system:authenticated","vision"]`. The webhook decides whether a stamp can be trusted.
"""

from collections.abc import Iterable

import orjson

from kube import marks
from kube.values.fields import Fields
from kube.values.texts import FREE_TEXT
from policy.submission import GroupName, UserName
from policy.wording import describe


def read_submitter(annotations: Fields) -> UserName | None:
    """Read the submitter's name; None without a stamp."""
    return UserName(annotations.text(marks.SUBMITTER_ANNOTATION, FREE_TEXT)) or None


def read_submitter_groups(annotations: Fields) -> tuple[GroupName, ...]:
    """Read the submitter's groups; problems are noted."""
    text = annotations.text(marks.SUBMITTER_GROUPS_ANNOTATION)
    if not text:
        return ()
    try:
        names = orjson.loads(text)
    except ValueError:
        names = text
    problem = _problem(names)
    if problem:
        annotations.note(marks.SUBMITTER_GROUPS_ANNOTATION, problem)
        return ()
    return tuple(GroupName(name) for name in names)


def format_submitter_groups(groups: Iterable[str]) -> str:
    """Write the groups; equal groups give equal texts. Empty names are left out."""
    return orjson.dumps(sorted(set(filter(None, groups)))).decode()


def _problem(names: object) -> str | None:
    if not isinstance(names, list):
        return f"must be a JSON list of group names, not {describe(names)}"
    for name in names:
        if not isinstance(name, str) or not name:
            return f"must be a JSON list of group names, not of {describe(name)}"
        if problem := FREE_TEXT.problem(name):
            return f"each name {problem}"
    return None
