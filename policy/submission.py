"""What a submitter asks for: the types that rules, quotas and cells share.

`kube.read.pods` builds them from Kubernetes objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

VcName = NewType("VcName", str)
ClassName = NewType("ClassName", str)
LeafType = NewType("LeafType", str)
UserName = NewType("UserName", str)
GroupName = NewType("GroupName", str)
NodeName = NewType("NodeName", str)
PodUid = NewType("PodUid", str)

DEFAULT_VC = VcName("default")


@dataclass(frozen=True, slots=True, order=True)
class GangKey:
    """Which gang: its name is unique within its namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


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
    leaf_type: LeafType | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Leaf cells that a submitter holds already, waiting gangs included."""

    occupied: int = 0
    occupied_high: int = 0
