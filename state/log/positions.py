"""Where a page of the log ends: the next one begins behind it, whatever was written meanwhile."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from state.log.records import DecisionRecord

_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The place of one record among all, by age."""

    at: datetime
    key: uuid.UUID

    @classmethod
    def of(cls, record: DecisionRecord) -> Self:
        """Where a record stands."""
        return cls(record.at, record.key)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote; ValueError if it is nothing of the kind."""
        at, _, key = text.partition("_")
        return cls(datetime.strptime(at, _FORMAT).replace(tzinfo=UTC), uuid.UUID(key))

    def __str__(self) -> str:
        return f"{self.at.astimezone(UTC).strftime(_FORMAT)}_{self.key}"


END: Final = Position(datetime(9999, 12, 31, tzinfo=UTC), uuid.UUID(int=2**128 - 1))
"""Behind every record."""
