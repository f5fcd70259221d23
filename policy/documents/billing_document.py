"""The Billing document: limits that a billing system sets, each until a moment.

It is the only document that a billing system may change, within the bounds that the Quotas
documents state. What has expired does not apply.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from policy.documents.models import Document, Strict, entries
from policy.documents.names import CheckedName, check_line
from policy.documents.quotas_document import LimitsEntry
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.quotas.billing import BilledLimits
from policy.submission import GroupName, UserName
from policy.wording import describe, join_path

MAX_ENTRIES: Final = 10_000
_REASON_CHARS: Final = 200


def parse_moment(value: object) -> datetime:
    """Read a moment with its time zone, to the second.

    With microseconds, the last moment of the year 9999 would be rounded up as a number, and could
    not be shown any more.
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        in_utc = moment.astimezone(UTC) if moment is not None and moment.tzinfo else None
    except (ValueError, OverflowError):  # OverflowError: the year 10000 in UTC
        in_utc = None
    if in_utc is None:
        what = 'a time with a zone in quotes, such as "2026-12-31T00:00:00Z"'
        raise ValueError(f"must be {what}, not {describe(value)}")
    return in_utc.replace(microsecond=0)


def _check_moment(value: object) -> str:
    parse_moment(value)
    return str(value)


def _check_reason(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a text in quotes, not {describe(value)}")
    return check_line(value, most=_REASON_CHARS)


class BilledEntry(Strict):
    """Limits of a group, or of one user in it, instead of those of the Quotas document."""

    group: CheckedName = Field(description="A group whose quotas have `billing`.")
    user: CheckedName | None = Field(
        default=None, description="One user of the group; without it, the group itself."
    )
    limits: LimitsEntry = Field(description="The limits; those that are missing stay.")
    until: Annotated[str, BeforeValidator(_check_moment)] = Field(
        description="When they end, such as `2026-12-31T00:00:00Z`."
    )
    reason: Annotated[str, BeforeValidator(_check_reason)] = Field(
        default="", description="Kept in the record of the change."
    )

    def build(self) -> BilledLimits:
        """Build the limits for decisions."""
        return BilledLimits(
            group=GroupName(self.group),
            user=UserName(self.user) if self.user else None,
            allowance=self.limits.build(),
            until=parse_moment(self.until),
            reason=self.reason,
        )


class BillingDocument(Document):
    """Limits that a billing system sets."""

    kind: Literal["Billing"] = Field(description="Always `Billing`.")
    limits: list[BilledEntry] = Field(max_length=MAX_ENTRIES, description="All of its limits.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield groups and users that are listed twice, and entries without a limit."""
        first: dict[tuple[str, str], str] = {}
        for place, entry in entries(data, "limits"):
            path = join_path(("limits", place))
            key = (str(entry.get("group")), str(entry.get("user") or ""))
            if first.setdefault(key, path) != path:
                yield Problem(path, f"duplicate of {first[key]}")
            if entry.get("limits") == {}:
                yield Problem(f"{path}.limits", "must have at least one limit")

    def build(self) -> tuple[BilledLimits, ...]:
        """Build the limits for decisions."""
        return tuple(entry.build() for entry in self.limits)

    def at(self, now: datetime) -> "BillingDocument":
        """Return the document without what has expired."""
        left = [entry for entry in self.limits if parse_moment(entry.until) > now]
        return self if len(left) == len(self.limits) else self.model_copy(update={"limits": left})
