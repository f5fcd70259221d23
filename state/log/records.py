"""The rows of the decision log, as values: decisions and observations.

A *decision* is the answer of a service and its reason. An *observation* is an input of the engine.
Together, in the order of `sequence`, they replay an epoch. Rows stay small: a document is stored
once, by its hash, and candidate nodes are stored as a difference to the known nodes
(`state.log.candidates`).
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
    """The subject of a row. Other words are allowed, and count as decisions."""

    ADMISSION = "admission"
    ORDERING = "ordering"
    RESERVATION = "reservation"
    PLACEMENT = "placement"
    PREEMPTION = "preemption"
    BIND = "bind"
    RELEASE = "release"
    RUN = "run"
    HOLD = "hold"
    SWAP = "swap"
    CANCEL = "cancel"
    START_BY = "start-by"
    # Observations, the inputs of the engine:
    NODE = "node"
    POD = "pod"
    DOCUMENT = "document"
    EXPIRY = "expiry"


_DOCUMENT_INPUTS: Final = ("document", "policy")
"""The `inputs` of rows that are hashes of documents."""

OBSERVATIONS: Final = frozenset({RowKind.NODE, RowKind.POD, RowKind.DOCUMENT, RowKind.EXPIRY})
NOT_LISTED: Final = OBSERVATIONS | {RowKind.ORDERING}
"""Rows that lists of decisions leave out; ranks are shown with the gangs that wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedDocument:
    """A document as it was in force; stored once, however many rows refer to it."""

    kind: str
    content: str

    @property
    def hash(self) -> str:
        """The name of this document in the `inputs` of rows."""
        text = f"{self.kind}\n{self.content}"
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


class _Keys:
    """Generates keys in the layout of UUID version 7, ascending within one process.

    So new rows are neighbours in an index over keys, unlike with random keys.
    """

    def __init__(self) -> None:
        self._last = 0
        self._random = random.Random()  # noqa: S311 - not a secret

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
    """Data for people."""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Data for a replay: all inputs that are not in an earlier row of the epoch."""
    epoch: int | None = None
    """The leadership term of the decision, if the service has one. Older epochs are refused."""
    sequence: int | None = None
    """Numbers the rows of one epoch without gaps: a gap is a lost row."""
    documents: tuple[LoggedDocument, ...] = ()
    """Documents to store with the row; a row that is read back has none."""
    facts: GangFacts | None = None
    """Facts to add to the history of a gang; a row that is read back has none."""
    key: uuid.UUID = field(default_factory=new_key)

    @property
    def is_listed(self) -> bool:
        """Whether lists of decisions have the row."""
        return self.kind not in NOT_LISTED

    @property
    def document_hashes(self) -> tuple[str, ...]:
        """The hashes of the documents that the row refers to."""
        named = (self.inputs.get(name) for name in _DOCUMENT_INPUTS)
        return tuple(one for one in named if isinstance(one, str) and one)
