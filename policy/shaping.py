"""Shapes: node selectors, tolerations, requests, mounts and run time that pods get.

All shapes that match a pod apply, from top to bottom. If two set the same thing, the first one
counts; of run times the shortest.
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
    """The source of the volume, as in a pod."""
    origin: str
    """The source in words."""
    sub_path: str = ""
    """The part of it that is mounted; `{user}` is replaced by the submitter."""
    is_read_only: bool = False

    def sub_path_of(self, user: UserName) -> str:
        """Return the submitter's part; no two submitters have the same one."""
        return self.sub_path.replace(USER_PLACEHOLDER, _folder_of(user))


def _folder_of(user: UserName) -> str:
    """Write a user as the name of one folder; no two users have the same."""
    safe = _SAFE if user.strip(".") else ""  # `.` and `..` are folders already
    return "".join(char if char in safe else _encode(char) for char in user)


def _encode(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Which pods it matches, and what they get."""

    name: str
    user: Pattern | None = None
    group: Pattern | None = None
    vc: Pattern | None = None
    namespace: Pattern | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    requests: Mapping[str, str] = field(default_factory=dict)
    """For containers that do not request a resource themselves."""
    fixed_requests: Mapping[str, str] = field(default_factory=dict)
    """For all containers, instead of their own requests."""
    mounts: tuple[Mount, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    max_run_seconds: int | None = None

    def matches(self, submission: Submission) -> bool:
        """Whether all conditions of the shape hold for this pod."""
        return (
            self.labels.items() <= submission.labels.items()  # first: the cheapest check
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
        """Return the shapes that apply to a pod, in order."""
        return tuple(shape for shape in self._shapes if shape.matches(submission))
