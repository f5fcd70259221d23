"""What can be converted, and how. Imports nothing: every command shows these names in its help."""

from enum import StrEnum


class ImportKind(StrEnum):
    """What can be converted."""

    RULES = "rules"
    HIVED = "hived"


class Occupied(StrEnum):
    """What the occupied column of rows counts that match only low classes."""

    LOW = "low"
    TOTAL = "total"
