"""The Quotas document: limits of groups and of users within them.

There may be several, one for each group, so that a group's admins can edit their own.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import Document, Strict, entries, mapping_of, names_given_twice
from policy.documents.names import CheckedName, check_quantity, class_or, parse_quantity
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.quotas.limits import Measure
from policy.quotas.quota_table import (
    FAIL,
    NO_ALLOWANCE,
    QUEUE,
    Allowance,
    BillingBounds,
    QuotaGroup,
)
from policy.submission import GroupName, LeafType, UserName
from policy.wording import describe, join_path

MAX_GROUPS: Final = 1000
MAX_USERS: Final = 10_000
_MOST: Final = 1_000_000_000
_AMOUNTS: Final = ("cpu", "memory")


def _check_hours(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        what = f"must be a number of hours from 0 to {_MOST}"
        raise ValueError(f"{what}, not {describe(value)}")
    return float(value)


Count = Annotated[int, Field(ge=0, le=_MOST)]
_Hours = Annotated[float, BeforeValidator(_check_hours)]
_Amount = Annotated[str, BeforeValidator(check_quantity)]


class HoursEntry(Strict):
    """Leaf-cell-hours in a period."""

    day: _Hours | None = Field(default=None, description="Per day, in UTC.")
    week: _Hours | None = Field(default=None, description="Per week, from Monday, in UTC.")
    month: _Hours | None = Field(default=None, description="Per month, in UTC.")
    total: _Hours | None = Field(
        default=None, description="In total, since the first gang was charged."
    )


class LimitsEntry(Strict):
    """How much may be held; a limit that is missing does not apply."""

    leaf_cells: Count | None = Field(default=None, description="Leaf cells in all classes.")
    leaf_cells_high: Count | None = Field(default=None, description="Leaf cells in high classes.")
    gangs: Count | None = Field(default=None, description="Gangs, waiting ones included.")
    cpu: _Amount | None = Field(
        default=None, description="CPUs that pods with leaf cells request, such as `64`."
    )
    memory: _Amount | None = Field(
        default=None, description="Memory that pods with leaf cells request, such as `512Gi`."
    )
    leaf_cell_hours: HoursEntry = Field(
        default=HoursEntry(),
        description="Leaf cells multiplied by the hours for which they are held.",
    )
    by_leaf_type: dict[CheckedName, Count] = Field(
        default={}, description="Leaf cells of one leaf type, for gangs that ask for that type."
    )

    def build(self) -> Allowance:
        """Build the quotas for decisions."""
        hours = self.leaf_cell_hours
        values = {
            Measure.LEAF_CELLS: self.leaf_cells,
            Measure.LEAF_CELLS_HIGH: self.leaf_cells_high,
            Measure.GANGS: self.gangs,
            Measure.HOURS_DAY: hours.day,
            Measure.HOURS_WEEK: hours.week,
            Measure.HOURS_MONTH: hours.month,
            Measure.HOURS_TOTAL: hours.total,
            Measure.CPU_MILLIS: None if self.cpu is None else parse_quantity(self.cpu) * 1000,
            Measure.MEMORY_BYTES: None if self.memory is None else parse_quantity(self.memory),
        }
        return Allowance(
            most={measure: most for measure, most in values.items() if most is not None},
            by_leaf_type={LeafType(name): most for name, most in self.by_leaf_type.items()},
        )


class UserEntry(Strict):
    """One user within a group."""

    name: CheckedName = Field(description="The user's name, as the API server knows it.")
    limits: LimitsEntry = Field(default=LimitsEntry(), description="How much this user may hold.")


class EachUserEntry(Strict):
    """Every member of a group that is not listed."""

    limits: LimitsEntry = Field(description="How much each of them may hold.")


class BillingEntry(Strict):
    """Bounds within which a billing system may change limits, in the Billing document."""

    identities: list[CheckedName] = Field(
        min_length=1, description="Users or groups of the API server, such as a service account."
    )
    most: LimitsEntry = Field(description="The highest limits; others may not be changed.")
    least: LimitsEntry = Field(default=LimitsEntry(), description="The lowest limits.")
    longest_days: int = Field(
        default=31, ge=1, le=366, description="How long a changed limit may apply at most."
    )

    def build(self) -> BillingBounds:
        """Build the bounds."""
        return BillingBounds(
            identities=tuple(self.identities),
            most=self.most.build(),
            least=self.least.build(),
            longest_days=self.longest_days,
        )


class GroupEntry(Strict):
    """One group."""

    name: CheckedName = Field(
        description="The group's name, as the API server or the Identity document knows it."
    )
    admins: list[CheckedName] = Field(
        default=[],
        description="Users that may change this document, if it is about their groups only.",
    )
    limits: LimitsEntry = Field(
        default=LimitsEntry(), description="How much all its users may hold together."
    )
    over: Annotated[str, BeforeValidator(class_or(FAIL, QUEUE))] = Field(
        default=FAIL,
        description="What happens to a gang over a limit: `fail`, `queue`, or the name of a class, "
        "in which it then runs beyond the limit.",
    )
    users: list[UserEntry] = Field(
        default=[], max_length=MAX_USERS, description="Users with limits of their own."
    )
    each_user: EachUserEntry | None = Field(
        default=None, description="Limits of each member that is not listed."
    )

    billing: BillingEntry | None = Field(
        default=None, description="What a billing system may change; without it, nothing."
    )

    def build(self) -> QuotaGroup:
        """Build the quotas for decisions."""
        return QuotaGroup(
            name=GroupName(self.name),
            admins=tuple(map(UserName, self.admins)),
            allowance=self.limits.build(),
            over=self.over,
            users={UserName(user.name): user.limits.build() for user in self.users},
            each_user=self.each_user.limits.build() if self.each_user else NO_ALLOWANCE,
            billing=self.billing.build() if self.billing else None,
        )


class QuotasDocument(Document):
    """How much groups, and users within them, may hold."""

    may_be_partial: ClassVar[bool] = True
    kind: Literal["Quotas"] = Field(description="Always `Quotas`.")
    groups: list[GroupEntry] = Field(
        max_length=MAX_GROUPS,
        description="The groups; a user is charged to the first group that lists the user.",
    )

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield duplicate names, and users' limits that exceed their group's."""
        yield from names_given_twice(data, "groups")
        for place, group in entries(data, "groups"):
            yield from names_given_twice(group, "users", within=("groups", place))
            yield from _too_much(group, within=("groups", place))

    def build(self) -> tuple[QuotaGroup, ...]:
        """Build the quotas for decisions."""
        return tuple(entry.build() for entry in self.groups)


_Path = tuple[str | int, ...]


def _too_much(group: Mapping[str, Plain], *, within: _Path) -> Iterator[Problem]:
    """Compare each limit of the group with the same one of its users, in raw data."""
    limits = mapping_of(group.get("limits"))
    for path in _limit_paths(limits):
        most = _number(limits, path)
        if most is None:
            continue
        where = join_path((*within, "limits", *path))
        yield from _users_problem(group, path, most=most, within=within, where=where)
        each = _number(mapping_of(mapping_of(group.get("eachUser")).get("limits")), path)
        if each is not None and each > most:
            at = join_path((*within, "eachUser", "limits", *path))
            yield Problem(at, f"is {each:g}, more than {where}, which is {most:g}")


def _users_problem(
    group: Mapping[str, Plain], path: _Path, *, most: float, within: _Path, where: str
) -> Iterator[Problem]:
    given = [
        number
        for _, user in entries(group, "users")
        if (number := _number(mapping_of(user.get("limits")), path)) is not None
    ]
    total = sum(given)
    if total > most:
        at, what = join_path((*within, "users")), join_path(("limits", *path))
        sum_of = "1 user is" if len(given) == 1 else f"{len(given)} users add up to"
        message = f"{what} of {sum_of} {total:g}, more than {where}"
        yield Problem(at, f"{message}, which is {most:g}")


def _limit_paths(limits: Mapping[str, Plain]) -> Iterator[_Path]:
    yield from (("leafCells",), ("leafCellsHigh",), ("gangs",))
    yield from ((name,) for name in _AMOUNTS)
    yield from (("leafCellHours", period) for period in ("day", "week", "month", "total"))
    yield from (("byLeafType", name) for name in mapping_of(limits.get("byLeafType")))


def _at(limits: Mapping[str, Plain], path: _Path) -> Plain:
    value: Plain = dict(limits)
    for part in path:
        value = mapping_of(value).get(str(part))
    return value


def _number(limits: Mapping[str, Plain], path: _Path) -> float | None:
    """Return a limit; None for a value that the models refuse."""
    value, read = _at(limits, path), parse_quantity if path[0] in _AMOUNTS else _check_hours
    try:
        return None if value is None else read(value)
    except ValueError:
        return None
