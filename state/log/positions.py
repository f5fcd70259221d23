"""Positions in the log: where a page ends and the next one begins, independent of new rows."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from state.log.records import DecisionRecord

_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The position of one record among all records, ordered by age."""

    at: datetime
    key: uuid.UUID

    @classmethod
    def of(cls, record: DecisionRecord) -> Self:
        """Return the position of a record."""
        return cls(record.at, record.key)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `str`; ValueError for other text."""
        at, _, key = text.partition("_")
        return cls(datetime.strptime(at, _FORMAT).replace(tzinfo=UTC), uuid.UUID(key))

    def __str__(self) -> str:
        return f"{self.at.astimezone(UTC).strftime(_FORMAT)}_{self.key}"


END: Final = Position(datetime(9999, 12, 31, tzinfo=UTC), uuid.UUID(int=2**128 - 1))
"""After every record."""
