"""What a submitter asks for: the types that rules, quotas and cells share.

`kube.read.pods` builds them from Kubernetes objects.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NewType, Self

VcName = NewType("VcName", str)
ClassName = NewType("ClassName", str)
LeafType = NewType("LeafType", str)
UserName = NewType("UserName", str)
GroupName = NewType("GroupName", str)
NodeName = NewType("NodeName", str)
PodUid = NewType("PodUid", str)

DEFAULT_VC = VcName("default")

_NO_OWNER: Final = "none"
_STORED: Final = re.compile(
    rf"(.*)@({_NO_OWNER}|[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})", re.DOTALL
)


@dataclass(frozen=True, slots=True, order=True)
class GangKey:
    """Which gang: its name is unique among the gangs of one workload in its namespace."""

    namespace: str
    name: str
    owner: str = ""
    """The UID of the workload whose pods its members are; empty if the name alone counts."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def stored_name(self) -> str:
        """Its name and owner in one text, as the ledger stores them: `bert@0b1c…`."""
        if self.owner or _STORED.fullmatch(self.name):
            return f"{self.name}@{self.owner or _NO_OWNER}"
        return self.name

    @classmethod
    def from_stored(cls, namespace: str, stored_name: str) -> Self:
        """Return the key that has this `stored_name`."""
        found = _STORED.fullmatch(stored_name)
        if found is None:
            return cls(namespace, stored_name)
        return cls(namespace, found[1], "" if found[2] == _NO_OWNER else found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One gang as its submitter asked for it: the input of rules and quotas."""

    user: UserName
    groups: tuple[GroupName, ...] = ()
    vc: VcName = DEFAULT_VC
    requested_class: ClassName
    gang: GangKey
    gang_size: int = 1
    leaf_count: int
    """Leaf cells of the whole gang."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    """What the members with leaf cells of the whole gang request, as far as known."""
    leaf_type: LeafType | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Leaf cells that a submitter holds already, waiting gangs included."""

    occupied: int = 0
    occupied_high: int = 0

    @property
    def occupied_low(self) -> int:
        """Those in classes that are not high."""
        return self.occupied - self.occupied_high
