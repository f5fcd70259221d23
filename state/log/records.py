"""What the decision log holds, as values: decisions and observations.

A row is either a *decision* (what a service answered, and why) or an *observation* (what the engine
was fed before it could answer): together, in the order of `sequence`, they replay an epoch. Rows
stay small: documents travel with the row that saw them first and are stored once, by their hash;
candidate nodes are a difference to the known ones (`state.log.candidates`).
"""

import hashlib
import random
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from state.history.facts import GangFacts

_TICKS_PER_MILLISECOND: Final = 4096
_NANOSECONDS_PER_MILLISECOND: Final = 1_000_000


class RowKind(StrEnum):
    """What a row is about. Other words are allowed, and are decisions."""

    ADMISSION = "admission"
    ORDERING = "ordering"
    PLACEMENT = "placement"
    PREEMPTION = "preemption"
    BIND = "bind"
    RELEASE = "release"
    # Observations: what the engine was fed.
    NODE = "node"
    POD = "pod"
    DOCUMENT = "document"
    EXPIRY = "expiry"


OBSERVATIONS: Final = frozenset({RowKind.NODE, RowKind.POD, RowKind.DOCUMENT, RowKind.EXPIRY})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDocument:
    """A document as it was in force, to be stored once however many rows refer to it."""

    kind: str
    content: str

    @property
    def hash(self) -> str:
        """What rows say to mean this document, in their `inputs`."""
        text = f"{self.kind}\n{self.content}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


class _Keys:
    """Makes keys in the layout of UUID version 7: one process's keys are in the order of making.

    So the newest rows of an index over keys are neighbours, which random keys are not.
    """

    def __init__(self) -> None:
        self._last = 0
        self._random = random.Random()  # noqa: S311 - tells rows apart, keeps no secret

    def make(self) -> uuid.UUID:
        now = time.time_ns() * _TICKS_PER_MILLISECOND // _NANOSECONDS_PER_MILLISECOND
        self._last = ticks = max(now, self._last + 1)
        milliseconds, fraction = divmod(ticks, _TICKS_PER_MILLISECOND)
        high = milliseconds << 16 | 0x7000 | fraction
        low = 0x8000000000000000 | self._random.getrandbits(62)
        return uuid.UUID(int=high << 64 | low)


new_key = _Keys().make


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One row. `at` has a time zone; the mappings do not change once the record is appended."""

    at: datetime
    service: str
    kind: str
    subject: str
    outcome: str
    reason: str
    latency_seconds: float
    pod_uid: str | None = None
    policy_version: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """What people want to see of it."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """What a replay needs: all that was looked at and is not in an earlier row of the epoch."""
    epoch: int | None = None
    """The leadership term it was made in, if its service has any. Older ones are refused."""
    sequence: int | None = None
    """Counts what one epoch's engine was fed and answered, without gaps: a gap is a lost row."""
    documents: tuple[LoggedDocument, ...] = ()
    """Stored beside the row, once; a row that is read back has none."""
    facts: GangFacts | None = None
    """What this adds to the history of a gang; a row that is read back has none."""
    key: uuid.UUID = field(default_factory=new_key)

    @property
    def is_observation(self) -> bool:
        """Whether the engine was told something, rather than asked."""
        return self.kind in OBSERVATIONS
