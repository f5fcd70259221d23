"""HiveD's pod annotation `pod-scheduling-spec`: what a HiveD user asks for.

It is accepted as HiveD accepts it: same defaults, same old names of fields, unknown fields ignored.
Messages begin with HiveD's own words where it has any, so that its users recognise them. Stricter
than HiveD on purpose: sizes are bounded, and names have no control characters.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kube import marks
from kube.hived.yaml_values import YamlFields, format_yaml, open_yaml
from kube.values import size_limits
from kube.values.texts import FREE_TEXT
from policy.submission import LeafType, VcName

PATH: Final = f"metadata.annotations[{marks.HIVED_SPEC_ANNOTATION}]"
OPPORTUNISTIC_PRIORITY: Final = -1
MAX_PRIORITY: Final = 1_000

_OLD_WORDS: Final = {
    "gpuType": "leafCellType",
    "gpuNumber": "leafCellNumber",
    "gpuIsolation": "leafCellIsolation",
    "physicalGpuIndices": "physicalLeafCellIndices",
}
_CACHED_LENGTH: Final = 2_048
_CACHED_SPECS: Final = 2_048


@dataclass(frozen=True, slots=True, order=True)
class HivedMembers:
    """Members of a gang that ask for equally many leaf cells each."""

    leaf_count: int
    pod_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HivedGang:
    """HiveD's affinity group. Members with equal leaf counts are merged, the smallest first."""

    name: str
    members: tuple[HivedMembers, ...]

    @property
    def size(self) -> int:
        """How many pods it has."""
        return sum(members.pod_count for members in self.members)

    @property
    def leaf_count(self) -> int:
        """How many leaf cells it needs altogether."""
        return sum(members.pod_count * members.leaf_count for members in self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class HivedSpec:
    """The annotation with its defaults; a gang of None is the pod alone."""

    vc: VcName
    priority: int = 0
    """-1 is opportunistic, 0 to 1000 guaranteed."""
    pinned_cell: str | None = None
    """If given, the leaf type is ignored, as in HiveD."""
    leaf_type: LeafType | None = None
    leaf_count: int
    gang_release: bool = False
    """HiveD reads it and ignores it."""
    lazy_preemption: bool = False
    """May be made opportunistic instead of being preempted."""
    ignore_candidate_nodes: bool = True
    """HiveD's `ignoreK8sSuggestedNodes`."""
    gang: HivedGang | None = None

    @property
    def is_opportunistic(self) -> bool:
        """Whether it borrows instead of using its VC's share."""
        return self.priority == OPPORTUNISTIC_PRIORITY


def parse_spec(text: str) -> HivedSpec:
    """Read the annotation; raise RequestError with every problem and its path."""
    return _parse_cached(text) if len(text) <= _CACHED_LENGTH else _parse(text)


def format_spec(spec: HivedSpec) -> str:
    """Write the annotation in its shortest form, without defaults."""
    fields: dict[str, Any] = {
        "virtualCluster": spec.vc,
        "priority": spec.priority,
        "pinnedCellId": spec.pinned_cell,
        "leafCellType": spec.leaf_type,
        "leafCellNumber": spec.leaf_count,
        "gangReleaseEnable": spec.gang_release or None,
        "lazyPreemptionEnable": spec.lazy_preemption or None,
        "ignoreK8sSuggestedNodes": None if spec.ignore_candidate_nodes else False,
        "affinityGroup": _format_gang(spec.gang) if spec.gang else None,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    return format_yaml(given)


def modernise(text: str) -> str:
    """Replace the old names of HiveD's fields by the new ones, as HiveD does."""
    for old, new in _OLD_WORDS.items():
        text = text.replace(old, new)
    return text


def _format_gang(gang: HivedGang) -> dict[str, Any]:
    members = [
        {"podNumber": part.pod_count, "leafCellNumber": part.leaf_count} for part in gang.members
    ]
    return {"name": gang.name, "members": members}


def _parse(text: str) -> HivedSpec:
    fields = open_yaml(modernise(text), path=PATH, max_bytes=size_limits.MAX_SPEC_BYTES)
    fields.problems.check()
    spec = _read_spec(fields)
    fields.problems.check()
    return spec


_parse_cached = lru_cache(maxsize=_CACHED_SPECS)(_parse)


def _read_spec(fields: YamlFields) -> HivedSpec:
    vc = fields.required_text("virtualCluster", FREE_TEXT, words="VirtualCluster is empty")
    leaf_count = _read_leaf_count(fields, words="LeafCellNumber is non-positive")
    return HivedSpec(
        vc=VcName(vc),
        priority=_read_priority(fields),
        pinned_cell=fields.text("pinnedCellId", FREE_TEXT) or None,
        leaf_type=LeafType(fields.text("leafCellType", FREE_TEXT)) or None,
        leaf_count=leaf_count,
        gang_release=fields.flag("gangReleaseEnable"),
        lazy_preemption=fields.flag("lazyPreemptionEnable"),
        ignore_candidate_nodes=fields.flag("ignoreK8sSuggestedNodes", default=True),
        gang=_read_gang(fields, leaf_count)
        if fields.values.get("affinityGroup") is not None
        else None,
    )


def _read_leaf_count(fields: YamlFields, *, words: str) -> int:
    """Read a leaf count; 0 if it is wrong."""
    maximum = size_limits.MAX_LEAF_COUNT
    return fields.count("leafCellNumber", minimum=1, maximum=maximum, below=words) or 0


def _read_priority(fields: YamlFields) -> int:
    priority = fields.count(
        "priority",
        minimum=OPPORTUNISTIC_PRIORITY,
        maximum=MAX_PRIORITY,
        below=f"Priority is less than {OPPORTUNISTIC_PRIORITY}",
        above=f"Priority is greater than {MAX_PRIORITY}",
    )
    return priority or 0


def _read_gang(fields: YamlFields, leaf_count: int) -> HivedGang:
    group = fields.fields("affinityGroup")
    name = group.required_text("name", FREE_TEXT, words="AffinityGroup.Name is empty")
    counts: Counter[int] = Counter()
    for part in group.items("members"):
        members = _read_members(part)
        counts[members.leaf_count] += members.pod_count
    gang = HivedGang(
        name=name, members=tuple(HivedMembers(*entry) for entry in sorted(counts.items()))
    )
    is_readable = leaf_count > 0 and 0 not in counts
    if is_readable and leaf_count not in counts:
        words = "AffinityGroup.Members does not contains current Pod"
        group.note("members", f"{words}: none of them has leafCellNumber {leaf_count}")
    if gang.size > size_limits.MAX_GANG_SIZE:
        most = size_limits.MAX_GANG_SIZE
        group.note("members", f"must have at most {most} pods, not {gang.size}")
    return gang


def _read_members(part: YamlFields) -> HivedMembers:
    words = "AffinityGroup.Members has non-positive"
    maximum = size_limits.MAX_GANG_SIZE
    return HivedMembers(
        pod_count=part.count("podNumber", minimum=1, maximum=maximum, below=f"{words} PodNumber")
        or 0,
        leaf_count=_read_leaf_count(part, words=f"{words} LeafCellNumber"),
    )
