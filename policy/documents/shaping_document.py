"""The Shaping document: what pods get by policy, from node selectors to commands and mounts."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import (
    Document,
    Location,
    PatternField,
    Strict,
    entries,
    names_given_twice,
)
from policy.documents.mount_entries import (
    AbsolutePath,
    MountField,
    ObjectName,
    Quantity,
    allowed_of,
    check_placeholders,
    host_path_problems,
    mount_problems,
    read_mounts,
)
from policy.documents.names import DNS_LABEL, DNS_NAME, check_line, matching
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.shaping import LABEL_CHARS, USER_PLACEHOLDER, Shape, Shapes
from policy.wording import describe, join_path, listing, quote

MAX_SHAPES: Final = 1_000
MAX_ENTRIES: Final = 100
MAX_LEAF_CELLS: Final = 4_096
_MAX_TEXT: Final = 4_096
_MATCHING: Final = ("name", "user", "group", "vc", "namespace", "labels")
_NOT_CHOSEN: Final = ("user", "group", "vc", "namespace")
"""Conditions that a submitter cannot fulfil by writing a label."""

_LABEL_PART: Final = r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_KEY: Final = rf"(?:(?=[^/]{{1,253}}/){DNS_NAME}/)?{_LABEL_PART}"
_VARIABLE: Final = r"[-._a-zA-Z][-._a-zA-Z0-9]*"


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text in quotes, not {describe(value)}")
    if len(value) > _MAX_TEXT or "\x00" in value:
        raise ValueError(f"must be a text of at most {_MAX_TEXT} characters without NUL")
    return value


def _check_secret(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of an object, not {describe(value)}")
    check_placeholders(check_line(value, most=253 - LABEL_CHARS))
    matching(DNS_NAME, "the name of an object")(value.replace(USER_PLACEHOLDER, "u"))
    return value


_LabelKey = Annotated[str, BeforeValidator(matching(_KEY, "the key of a label", most=317))]
_LabelValue = Annotated[str, BeforeValidator(matching(rf"(?:{_LABEL_PART})?", "a label's value"))]
_Resource = Literal["cpu", "memory", "ephemeral-storage"]
"""Not leaf cells: they have a field of their own, because the submitter is charged for them."""
_Variable = Annotated[str, BeforeValidator(matching(_VARIABLE, "the name of a variable"))]
_Text = Annotated[str, BeforeValidator(_check_text)]
_ShapeName = Annotated[
    str, BeforeValidator(matching(DNS_LABEL, "lower-case letters, digits and -", most=40))
]


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


class AllowedEntry(Strict):
    """What shapes may use of nodes and namespaces."""

    host_paths: list[AbsolutePath] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="Directories of nodes; mounts may use them and what is below them.",
    )
    service_accounts: list[ObjectName] = Field(
        default=[], max_length=MAX_ENTRIES, description="Service accounts that pods may get."
    )


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
    requests: dict[_Resource, Quantity] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="What a container with leaf cells requests if it has no request itself; in a "
        "pod without leaf cells, the first container.",
    )
    fixed_requests: dict[_Resource, Quantity] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="What such a container requests, instead of its own request.",
    )
    fixed_leaf_cells: int | None = Field(
        default=None,
        ge=0,
        le=MAX_LEAF_CELLS,
        description="How many leaf cells a pod asks for and is charged for, instead of its own "
        "request; 0 for none.",
    )
    leaf_resource: Literal["nvidia.com/gpu", "amd.com/gpu"] = Field(
        default="nvidia.com/gpu",
        description="The resource of `fixedLeafCells`, for a pod that asks for none.",
    )
    env: dict[_Variable, _Text] = Field(
        default={},
        max_length=MAX_ENTRIES,
        description="Variables for all containers; a container that sets one itself keeps it.",
    )
    command: list[_Text] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="The command of the first container, instead of its own.",
    )
    args: list[_Text] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="The arguments of the first container, instead of its own.",
    )
    working_dir: AbsolutePath | None = Field(
        default=None, description="The working directory of the first container."
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="The service account of the pod, one of `allowed.serviceAccounts`.",
    )
    mounts: list[MountField] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="Volumes for all containers; a container that already mounts something there "
        "keeps it.",
    )
    image_pull_secrets: list[Annotated[str, BeforeValidator(_check_secret)]] = Field(
        default=[],
        max_length=MAX_ENTRIES,
        description="Secrets to pull images with; `{user}` is replaced by the submitter as a DNS "
        "label.",
    )
    max_run_seconds: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="How long a pod may run at most."
    )

    ignores_disruptions: bool = Field(
        default=False,
        description="Whether a new Job of such pods, in an opportunistic class and without a "
        "`podFailurePolicy`, gets one that ignores disruptions: a preempted pod then counts as no "
        "failure. The Job controller still waits before it creates pods again.",
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
                "command": tuple(self.command),
                "args": tuple(self.args),
            }
        )


def _build_toleration(entry: TolerationEntry) -> Mapping[str, Any]:
    """Write it as the API server stores it, so that it can be compared."""
    return {**entry.model_dump(by_alias=True, exclude_none=True), "operator": entry.operator}


class ShapingDocument(Document):
    """What pods get in addition to their class. All shapes that match apply, from top to bottom."""

    kind: Literal["Shaping"] = Field(description="Always `Shaping`.")
    allowed: AllowedEntry = Field(
        default=AllowedEntry(), description="What shapes may use; without it, nothing of these."
    )
    shapes: list[ShapeEntry] = Field(max_length=MAX_SHAPES, description="All shapes, in order.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield duplicate names, shapes without effect, and values that pods cannot have."""
        yield from names_given_twice(data, "shapes")
        host_paths, accounts = (allowed_of(data, key) for key in ("hostPaths", "serviceAccounts"))
        for place, entry in entries(data, "shapes"):
            where = ("shapes", place)
            if not any(map(_has_effect, entry.items())):
                yield Problem(join_path(where), "has no effect on the pods that it matches")
            yield from _toleration_problems(entry, where)
            yield from mount_problems(entry, where)
            yield from host_path_problems(entry, where, allowed=host_paths)
            yield from _account_problems(entry, where, allowed=accounts)
            yield from _open_to_all(entry, where)

    def build(self) -> Shapes:
        """Build the shapes for pods."""
        return Shapes(entry.build() for entry in self.shapes)


def _toleration_problems(entry: Mapping[str, Plain], where: Location) -> Iterator[Problem]:
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


def _account_problems(
    entry: Mapping[str, Plain], where: Location, *, allowed: list[str]
) -> Iterator[Problem]:
    name = entry.get("serviceAccountName")
    if isinstance(name, str) and name not in allowed:
        known = f"is not one of allowed.serviceAccounts ({listing(allowed) or 'none'})"
        yield Problem(join_path((*where, "serviceAccountName")), f"{quote(name)} {known}")


def _open_to_all(entry: Mapping[str, Plain], where: Location) -> Iterator[Problem]:
    """Yield a shape with which a label would give any submitter rights on nodes or the API."""
    given = [name for name in ("serviceAccountName",) if entry.get(name)]
    given += ["hostPath"] * any(mount.get("hostPath") for _, mount in read_mounts(entry))
    if given and entry.get("labels") and not any(entry.get(key) for key in _NOT_CHOSEN):
        what = f"gives {listing(given)} to every submitter who writes these labels"
        yield Problem(join_path(where), f"{what}; name its user, group, vc or namespace, too")


def _has_effect(field: tuple[str, Plain]) -> bool:
    key, value = field
    is_given = value not in (None, "", [], {}) and value is not False
    return is_given and key not in (*_MATCHING, "leafResource")
