"""Shapes: what pods get by policy, from node selectors to commands and mounts.

All shapes that match a pod apply, from top to bottom. If two set the same thing, the first one
counts; of run times the shortest.
"""

import hashlib
import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from policy.rules.patterns import Pattern
from policy.submission import GroupName, UserName, VcName

_SAFE: Final = frozenset(string.ascii_letters + string.digits + "-_.~@:")
USER_PLACEHOLDER: Final = "{user}"
LABEL_CHARS: Final = 63
"""The longest DNS label."""
_HASH_CHARS: Final = 12
_PLAIN_LABEL: Final = re.compile(rf"[a-z0-9](?:[-a-z0-9]{{0,{LABEL_CHARS - 2}}}[a-z0-9])?")
_HASHED_LABEL: Final = re.compile(rf".*-[0-9a-f]{{{_HASH_CHARS}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodOrigin:
    """The facts about a pod that decide which shapes match it."""

    user: UserName | None
    """The submitter; None if a controller created the pod and it is not known for which user."""
    groups: tuple[GroupName, ...] = ()
    vc: VcName | None
    """None if the pod names no VC and the default one is not open to its submitter."""
    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)


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

    def sub_path_of(self, user: UserName | None) -> str:
        """Return the submitter's part; no two submitters have the same one."""
        folder = _folder_of(user) if user is not None else USER_PLACEHOLDER
        return self.sub_path.replace(USER_PLACEHOLDER, folder)


def _folder_of(user: UserName) -> str:
    """Write a user as the name of one folder; no two users have the same."""
    safe = _SAFE if user.strip(".") else ""  # `.` and `..` are folders already
    return "".join(char if char in safe else _encode(char) for char in user)


def label_of(user: UserName) -> str:
    """Write a user as a DNS label: the name itself if it is one, else its start and a hash.

    A name that looks like one with a hash gets a hash, too, so that it is no other user's label.
    """
    if _PLAIN_LABEL.fullmatch(user) and not _HASHED_LABEL.fullmatch(user):
        return user
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    start = re.sub("[^a-z0-9]+", "-", user.lower())[: LABEL_CHARS - _HASH_CHARS - 1].strip("-")
    return f"{start or 'user'}-{digest}"


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
    fixed_leaf_cells: int | None = None
    """How many leaf cells a pod has, instead of those that it asks for."""
    leaf_resource: str = ""
    """The resource of fixed leaf cells, for a pod that asks for none."""
    env: Mapping[str, str] = field(default_factory=dict)
    """For containers that do not set a variable themselves."""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str | None = None
    """These three are for the first container, instead of its own."""
    service_account_name: str | None = None
    mounts: tuple[Mount, ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    """`{user}` is replaced by the submitter's label."""
    max_run_seconds: int | None = None
    ignores_disruptions: bool = False
    """Whether an opportunistic Job of such pods gets a policy that ignores disruptions."""

    def matches(self, origin: PodOrigin) -> bool:
        """Whether all conditions of the shape hold for this pod."""
        return (
            self.labels.items() <= origin.labels.items()  # first: the cheapest check
            and _is_found(self.user, origin.user)
            and _is_found(self.vc, origin.vc)
            and _is_found(self.namespace, origin.namespace)
            and (self.group is None or any(map(self.group.found_in, origin.groups)))
            and (origin.user is not None or not self._names_user)
        )

    def pull_secrets_of(self, user: UserName | None) -> list[str]:
        """Return the pull secrets for a submitter."""
        label = label_of(user) if user is not None else USER_PLACEHOLDER
        return [name.replace(USER_PLACEHOLDER, label) for name in self.image_pull_secrets]

    @property
    def _names_user(self) -> bool:
        texts = (*self.image_pull_secrets, *(mount.sub_path for mount in self.mounts))
        return any(USER_PLACEHOLDER in text for text in texts)


def _is_found(pattern: Pattern | None, text: str | None) -> bool:
    return pattern is None or (text is not None and pattern.found_in(text))


class Shapes:
    """All shapes, in order."""

    def __init__(self, shapes: Iterable[Shape] = ()) -> None:
        self._shapes = tuple(shapes)
        self.fix_leaf_cells = any(one.fixed_leaf_cells is not None for one in self._shapes)
        """Whether a shape may change how many leaf cells a pod asks for."""

    def matching(self, origin: PodOrigin) -> tuple[Shape, ...]:
        """Return the shapes that apply to a pod, in order."""
        return tuple(shape for shape in self._shapes if shape.matches(origin))
