"""The Queues document: gangs that it names, advance reservations and maintenance windows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

from policy.documents.billing_document import parse_moment
from policy.documents.models import (
    Strict,
    entries,
    items_of,
    limited_by_budget,
    mapping_of,
    names_given_twice,
)
from policy.documents.names import CheckedName, ClassNameField, check_line
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.queues.durations import parse_duration
from policy.queues.who import Who, parse_when
from policy.queues.windows import AdvanceReservation, MaintenanceWindow
from policy.rules.expression import Expression
from policy.submission import LeafType, NodeName, VcName
from policy.wording import describe, join_path, listing, quote

MAX_NAMES: Final = 10_000
MAX_WINDOWS: Final = 200
_MOST_MEMBERS: Final = 4096
_MOST_LEAF_CELLS: Final = 1024
_REASON_CHARS: Final = 200


def _check_moment(value: object) -> str:
    parse_moment(value)
    return str(value)


def _check_duration(value: object) -> str:
    parse_duration(value)
    return str(value)


def _check_reason(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text in quotes, not {describe(value)}")
    return check_line(value, most=_REASON_CHARS)


Moment = Annotated[str, BeforeValidator(_check_moment)]
WhenField = Annotated[
    Expression | None,
    PlainValidator(limited_by_budget(parse_when), json_schema_input_type=str | None),
    PlainSerializer(lambda value: None if value is None else str(value)),
]


class WhoEntry(Strict):
    """Which gangs are meant. An empty field takes all; every other field must match."""

    classes: list[ClassNameField] = Field(
        default=[], max_length=MAX_NAMES, description="Classes of gangs."
    )
    groups: list[CheckedName] = Field(
        default=[], max_length=MAX_NAMES, description="Groups that are charged for gangs."
    )
    users: list[CheckedName] = Field(
        default=[], max_length=MAX_NAMES, description="Submitters of gangs."
    )
    vcs: list[CheckedName] = Field(default=[], max_length=MAX_NAMES, description="Their VCs.")
    when: WhenField = Field(
        default=None,
        description="A CEL expression over `user`, `group`, `vc`, `class`, `priority`, "
        "`leafCells`, `leafType` and `namespace`, such as `leafCells <= 8`.",
    )

    def build(self) -> Who:
        """Build what decides."""
        return Who(
            classes=frozenset(self.classes),
            groups=frozenset(self.groups),
            users=frozenset(self.users),
            vcs=frozenset(self.vcs),
            when=self.when,
        )


class AdvanceEntry(Strict):
    """Leaf cells of a VC that only some of its gangs may use for a time."""

    name: CheckedName = Field(description="Shown to users whose gangs wait for it.")
    vc: CheckedName = Field(description="The VC whose leaf cells are reserved.")
    leaf_type: CheckedName | None = Field(default=None, description="Their leaf type; else any.")
    members: int = Field(
        default=1,
        ge=1,
        le=_MOST_MEMBERS,
        description="How many members of a gang are to fit at the same time.",
    )
    leaf_cells: int = Field(
        ge=1, le=_MOST_LEAF_CELLS, description="Leaf cells of each member; they lie on one node."
    )
    who: WhoEntry = Field(description="The gangs of the VC that may use them; not all gangs.")
    begins: Moment = Field(
        alias="from", description="When it begins, with a zone: `2026-12-31T00:00:00Z`."
    )
    ends: Moment = Field(alias="until", description="When it ends.")

    def build(self) -> AdvanceReservation:
        """Build what decides."""
        return AdvanceReservation(
            name=self.name,
            vc=VcName(self.vc),
            leaf_type=LeafType(self.leaf_type) if self.leaf_type is not None else None,
            members=self.members,
            leaf_cells=self.leaf_cells,
            who=self.who.build(),
            begins=parse_moment(self.begins).timestamp(),
            ends=parse_moment(self.ends).timestamp(),
        )


class MaintenanceEntry(Strict):
    """Nodes that no gang uses for a time. Gangs that still run there are named, not ended."""

    name: CheckedName = Field(description="Shown to users whose gangs wait for it.")
    nodes: list[CheckedName] = Field(
        default=[], max_length=MAX_NAMES, description="Names of nodes; unknown ones do no harm."
    )
    node_labels: dict[str, str] = Field(
        default={},
        max_length=32,
        description="All nodes with these labels belong to it, too: `{rack: r1}`.",
    )
    begins: Moment = Field(
        alias="from", description="When it begins, with a zone: `2026-12-31T00:00:00Z`."
    )
    ends: Moment = Field(alias="until", description="When it ends.")
    reason: Annotated[str, BeforeValidator(_check_reason)] = Field(
        default="", description="Shown to users."
    )
    notice: Annotated[str, BeforeValidator(_check_duration)] = Field(
        default="24h",
        description="How long before it begins the owners of gangs are told that are expected to "
        "run then.",
    )
    opportunistic: Literal["drain", "allow"] = Field(
        default="drain",
        description="Before it begins: `drain` starts an opportunistic gang there only if it is "
        "expected to end in time, like any other; `allow` starts all.",
    )

    def build(self) -> MaintenanceWindow:
        """Build what decides."""
        return MaintenanceWindow(
            name=self.name,
            nodes=tuple(map(NodeName, self.nodes)),
            labels=tuple(sorted(self.node_labels.items())),
            begins=parse_moment(self.begins).timestamp(),
            ends=parse_moment(self.ends).timestamp(),
            reason=self.reason,
            notice=parse_duration(self.notice),
            opportunistic=self.opportunistic,
        )


# -- checks of several fields


def window_problems(data: Mapping[str, Plain]) -> Iterator[Problem]:
    """Yield what fields of a window say against each other; values of a wrong type are skipped."""
    for key in ("reservations", "maintenance"):
        yield from names_given_twice(data, key)
        for place, entry in entries(data, key):
            yield from _order_problems(entry, (key, place))
    for place, entry in entries(data, "reservations"):
        yield from _who_problems(entry, place)
    for place, entry in entries(data, "maintenance"):
        if not items_of(entry, "nodes") and not mapping_of(entry.get("nodeLabels")):
            path = join_path(("maintenance", place))
            yield Problem(path, "needs nodes or nodeLabels: it concerns no node")


def _order_problems(entry: Mapping[str, Plain], path: tuple[str | int, ...]) -> Iterator[Problem]:
    try:
        begins, ends = parse_moment(entry.get("from")), parse_moment(entry.get("until"))
    except ValueError:
        return
    if ends <= begins:
        yield Problem(join_path((*path, "until")), f"must be after from ({entry.get('from')})")


def _who_problems(entry: Mapping[str, Plain], place: int) -> Iterator[Problem]:
    who, path = mapping_of(entry.get("who")), join_path(("reservations", place, "who"))
    vcs = who.get("vcs")
    if not any(value for key, value in who.items() if key != "vcs") and "who" in entry:
        yield Problem(path, "takes every gang of the VC, so that nothing is reserved")
    if isinstance(vcs, list) and vcs and entry.get("vc") not in vcs:
        yield Problem(f"{path}.vcs", f"does not contain the VC {describe(entry.get('vc'))}")


def unknown_in_windows(
    reservations: Sequence[AdvanceEntry], *, classes: tuple[str, ...], vcs: frozenset[str] | None
) -> Iterator[Problem]:
    """Yield classes and VCs of reservations that do not exist."""
    known = listing(classes) or "none, because there is no Classes document"
    for place, one in enumerate(reservations):
        for index, name in enumerate(one.who.classes):
            if name not in classes:
                path = join_path(("reservations", place, "who", "classes", index))
                yield Problem(path, f"{quote(name)} is not one of the classes: {known}")
        if vcs is not None and one.vc not in vcs:
            path = join_path(("reservations", place, "vc"))
            yield Problem(path, f"{quote(one.vc)} is not one of the VCs {listing(sorted(vcs))}")
