"""The Shaping document: node selectors, tolerations, resources, mounts and run time by policy."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import Document, PatternField, Strict, entries, names_given_twice
from policy.documents.names import DNS_LABEL, DNS_NAME, matching
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.shaping import USER_PLACEHOLDER, Mount, Shape, Shapes
from policy.wording import join_path, listing, quote

MAX_SHAPES: Final = 1_000
MAX_ENTRIES: Final = 100
_MATCHING: Final = ("name", "user", "group", "vc", "namespace", "labels")
_SOURCES: Final = ("persistentVolumeClaim", "configMap", "hostPath", "memory")

_LABEL_PART: Final = r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_KEY: Final = rf"(?:(?=[^/]{{1,253}}/){DNS_NAME}/)?{_LABEL_PART}"
_QUANTITY: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?(?:[KMGTPE]i|[mkMGTPE])?"


def _check_quantity(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return matching(_QUANTITY, 'a quantity such as 4, "500m" or 16Gi')(text)


def _check_path(value: object) -> str:
    path = matching(r"/[^:\x00-\x1f]*", "an absolute path without a colon", most=1024)(value)
    if ".." in path.split("/"):
        raise ValueError(f"must not contain .., as {quote(path)} does")
    return path


def _check_sub_path(value: object) -> str:
    sub_path = matching(r"[^/\x00-\x1f][^\x00-\x1f]*", "a relative path", most=1024)(value)
    if ".." in sub_path.split("/"):
        raise ValueError(f"must not contain .., as {quote(sub_path)} does")
    if set("{}") & set(sub_path.replace(USER_PLACEHOLDER, "")):
        raise ValueError(f"may contain no other placeholder than {USER_PLACEHOLDER}")
    return sub_path


_LabelKey = Annotated[str, BeforeValidator(matching(_KEY, "the key of a label", most=317))]
_LabelValue = Annotated[str, BeforeValidator(matching(rf"(?:{_LABEL_PART})?", "a label's value"))]
_Resource = Literal["cpu", "memory", "ephemeral-storage"]
"""Not leaf cells: the submitter asks for them and is charged for them."""
_Quantity = Annotated[str, BeforeValidator(_check_quantity)]
_ObjectName = Annotated[str, BeforeValidator(matching(DNS_NAME, "the name of an object"))]
_ShapeName = Annotated[
    str, BeforeValidator(matching(DNS_LABEL, "lower-case letters, digits and -", most=40))
]
_Path = Annotated[str, BeforeValidator(_check_path)]


class TolerationEntry(Strict):
    """A toleration, as in a pod."""

    key: _LabelKey | None = Field(default=None, description="The taint's key; none means all.")
    operator: Literal["Equal", "Exists"] = Field(default="Equal", description="How to compare.")
    value: _LabelValue | None = Field(default=None, description="The taint's value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="The taint's effect; none means all."
    )
    toleration_seconds: int | None = Field(
        default=None, ge=0, description="How long a taint of effect NoExecute is tolerated."
    )


class MountEntry(Strict):
    """A volume for all containers, from exactly one source."""

    path: _Path = Field(description="The path in the containers.")
    persistent_volume_claim: _ObjectName | None = Field(
        default=None, description="The name of a claim in the pod's namespace."
    )
    config_map: _ObjectName | None = Field(
        default=None, description="The name of a ConfigMap in the pod's namespace."
    )
    host_path: _Path | None = Field(default=None, description="A directory of the node.")
    memory: _Quantity | None = Field(default=None, description="The size of a disk in memory.")
    sub_path: Annotated[str, BeforeValidator(_check_sub_path)] | None = Field(
        default=None, description="The part that is mounted; `{user}` is replaced by the submitter."
    )
    read_only: bool = Field(default=False, description="Whether it is mounted read-only.")

    def build(self) -> Mount:
        """Build the shapes for pods."""
        return Mount(
            path=self.path,
            source=self._source(),
            origin=self._origin(),
            sub_path=self.sub_path or "",
            is_read_only=self.read_only,
        )

    def _source(self) -> dict[str, Any]:
        if self.persistent_volume_claim:
            return {"persistentVolumeClaim": {"claimName": self.persistent_volume_claim}}
        if self.config_map:
            return {"configMap": {"name": self.config_map}}
        if self.host_path:
            return {"hostPath": {"path": self.host_path}}
        return {"emptyDir": {"medium": "Memory", "sizeLimit": self.memory}}

    def _origin(self) -> str:
        given = self.model_dump(by_alias=True)
        return next(f"{source} {given[source]}" for source in _SOURCES if given[source])


class ShapeEntry(Strict):
    """Which pods it matches, where an empty field matches all, and what they get."""

    name: _ShapeName = Field(description="Shown to users whose pods it changes.")
    user: PatternField = Field(default=None, description="Found in the submitter's name.")
    group: PatternField = Field(
        default=None, description="Found in the name of at least one of the submitter's groups."
    )
    vc: PatternField = Field(default=None, description="Found in the name of the virtual cluster.")
    namespace: PatternField = Field(default=None, description="Found in the namespace's name.")
    labels: dict[_LabelKey, _LabelValue] = Field(
        default={}, max_length=MAX_ENTRIES, description="Labels that a pod must have."
    )
    node_selector: dict[_LabelKey, _LabelValue] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="Labels of the nodes that it may use; a pod that asks for others is refused.",
    )
    tolerations: list[TolerationEntry] = Field(
        default=[], max_length=MAX_ENTRIES, description="Tolerations in addition to its own."
    )
    requests: dict[_Resource, _Quantity] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="What a container with leaf cells requests if it has no request itself.",
    )
    fixed_requests: dict[_Resource, _Quantity] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="What a container with leaf cells requests, instead of its own request.",
    )
    mounts: list[MountEntry] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="Volumes for all containers; a container that already mounts something there "
        "keeps it.",
    )
    image_pull_secrets: list[_ObjectName] = Field(
        default=[], max_length=MAX_ENTRIES, description="Secrets to pull images with."
    )
    max_run_seconds: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="How long a pod may run at most."
    )

    def build(self) -> Shape:
        """Build the shapes for pods."""
        plain = {name: getattr(self, name) for name in type(self).model_fields}
        return Shape(
            **{
                **plain,
                "tolerations": tuple(map(_build_toleration, self.tolerations)),
                "mounts": tuple(mount.build() for mount in self.mounts),
                "image_pull_secrets": tuple(self.image_pull_secrets),
            }
        )


def _build_toleration(entry: TolerationEntry) -> Mapping[str, Any]:
    """Write it as the API server stores it, so that it can be compared."""
    return {**entry.model_dump(by_alias=True, exclude_none=True), "operator": entry.operator}


class ShapingDocument(Document):
    """What pods get in addition to their class. All shapes that match apply, from top to bottom."""

    kind: Literal["Shaping"] = Field(description="Always `Shaping`.")
    shapes: list[ShapeEntry] = Field(max_length=MAX_SHAPES, description="All shapes, in order.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield duplicate names, shapes without effect, and values that pods cannot have."""
        yield from names_given_twice(data, "shapes")
        for place, entry in entries(data, "shapes"):
            where = ("shapes", place)
            if not any(value for key, value in entry.items() if key not in _MATCHING):
                yield Problem(join_path(where), "has no effect on the pods that it matches")
            yield from _toleration_problems(entry, where)
            yield from _mount_problems(entry, where)

    def build(self) -> Shapes:
        """Build the shapes for pods."""
        return Shapes(entry.build() for entry in self.shapes)


def _toleration_problems(
    entry: Mapping[str, Plain], where: tuple[str | int, ...]
) -> Iterator[Problem]:
    for place, toleration in entries(entry, "tolerations"):
        path, is_exists = (
            join_path((*where, "tolerations", place)),
            toleration.get("operator") == "Exists",
        )
        if is_exists and toleration.get("value"):
            yield Problem(path, "operator Exists takes no value")
        if not is_exists and not toleration.get("key"):
            yield Problem(path, "needs a key, or operator Exists to tolerate all taints")
        if (
            toleration.get("tolerationSeconds") is not None
            and toleration.get("effect") != "NoExecute"
        ):
            yield Problem(path, "tolerationSeconds needs effect NoExecute")


def _mount_problems(entry: Mapping[str, Plain], where: tuple[str | int, ...]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for place, mount in entries(entry, "mounts"):
        path = join_path((*where, "mounts", place))
        given = [source for source in _SOURCES if mount.get(source)]
        if len(given) != 1:
            found = f"not {listing(given)}" if given else "it has none"
            yield Problem(path, f"must have exactly one of {listing(_SOURCES)}; {found}")
        target = mount.get("path")
        if isinstance(target, str) and first.setdefault(target, path) != path:
            yield Problem(f"{path}.path", f"duplicate of {first[target]}.path")
