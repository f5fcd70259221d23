"""Shapes: what pods of a VC, a group or a purpose get beside their class.

All shapes that match a pod apply, from top to bottom; where two say something about the same thing,
the first one counts, and of run times the shortest.
"""

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policy.rules.patterns import Pattern
from policy.submission import Submission, UserName

_SAFE: Final = frozenset(string.ascii_letters + string.digits + "-_.~@:")
USER_PLACEHOLDER: Final = "{user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume that every container gets."""

    path: str
    """Where containers see it."""
    source: Mapping[str, Any]
    """Where it comes from, as a pod's volume says it."""
    origin: str
    """The same in words."""
    sub_path: str = ""
    """The part of it that is mounted; `{user}` stands for the submitter."""
    is_read_only: bool = False

    def sub_path_of(self, user: UserName) -> str:
        """Name the submitter's part: one name of a folder, another one for every submitter."""
        return self.sub_path.replace(USER_PLACEHOLDER, _folder_of(user))


def _folder_of(user: UserName) -> str:
    """Write a user as one folder's name; no two users have the same."""
    safe = _SAFE if user.strip(".") else ""  # `.` and `..` are folders already
    return "".join(char if char in safe else _encode(char) for char in user)


def _encode(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """For whom, and what."""

    name: str
    user: Pattern | None = None
    group: Pattern | None = None
    vc: Pattern | None = None
    namespace: Pattern | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    """For containers that say nothing about a resource."""
    fixed_requests: Mapping[str, str] = field(default_factory=dict)
    """Whatever containers say."""
    mounts: tuple[Mount, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    max_run_seconds: int | None = None

    def matches(self, submission: Submission) -> bool:
        """Tell whether all that the shape says about pods is true of this one."""
        return (
            self.labels.items() <= submission.labels.items()  # first: it costs least
            and _is_found(self.user, submission.user)
            and _is_found(self.vc, submission.vc)
            and _is_found(self.namespace, submission.gang.namespace)
            and (self.group is None or any(map(self.group.found_in, submission.groups)))
        )


def _is_found(pattern: Pattern | None, text: str) -> bool:
    return pattern is None or pattern.found_in(text)


class Shapes:
    """All shapes, in order."""

    def __init__(self, shapes: Iterable[Shape] = ()) -> None:
        self._shapes = tuple(shapes)

    def matching(self, submission: Submission) -> tuple[Shape, ...]:
        """Return the shapes that apply to a pod, the most important one first."""
        return tuple(shape for shape in self._shapes if shape.matches(submission))
