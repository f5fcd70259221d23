"""The rows of one epoch of one engine: numbers them, and tracks the nodes that were observed.

Every input and every decision of the engine is appended here, in the engine's own order. So
`sequence` has no gaps when rows are appended, and a gap in the stored rows is a lost row. Callers
observe a node here before they encode a candidate list that contains it.

`MissingFinder` finds lost rows for a replay.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final

from state.log.candidates import Encoded, KnownNodes
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, LoggedDocument, RowKind

_MOST_GAPS: Final = 100


class EpochJournal:
    """Appends the rows of one epoch. Single writer, like the engine itself."""

    def __init__(self, log: DecisionLog, *, epoch: int) -> None:
        self.epoch = epoch
        self._log = log
        self._sequence = 0
        self._nodes = KnownNodes()

    @property
    def sequence(self) -> int:
        """The number of the last row."""
        return self._sequence

    def encode_candidates(self, offered: Collection[str]) -> Encoded:
        """Encode the nodes that were offered, as an input of the next row."""
        return self._nodes.encode(offered)

    def append(self, record: DecisionRecord) -> None:
        """Number a row and append it to the log. Never waits and never raises."""
        self._sequence += 1
        self._log.append(replace(record, epoch=self.epoch, sequence=self._sequence))

    def observe_node(self, record: DecisionRecord, *, is_gone: bool) -> None:
        """Append an observation of the node `record.subject`."""
        if is_gone:
            self._nodes.forget(record.subject)
        else:
            self._nodes.observe(record.subject)
        self.append(record)

    def observe_document(self, record: DecisionRecord, document: LoggedDocument) -> None:
        """Append that a document is in force now. The row carries the text, stored or not.

        So a document is kept as long as the rows that refer to it.
        """
        inputs = {**record.inputs, "document": document.hash}
        self.append(replace(record, kind=RowKind.DOCUMENT, inputs=inputs, documents=(document,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRows:
    """Consecutive rows of an epoch that the log lacks."""

    first: int
    last: int

    def __str__(self) -> str:
        if self.first == self.last:
            return f"row {self.first} is missing"
        return f"rows {self.first} to {self.last} are missing"


class MissingFinder:
    """Finds gaps in ascending sequence numbers; rows lost at the end cannot be found."""

    def __init__(self, *, first: int = 1) -> None:
        self._expected = first
        self.found: list[MissingRows] = []
        """The first gaps; there may be more."""
        self.count = 0
        """How many rows are missing."""

    def note(self, sequence: int) -> None:
        """Note the next number."""
        if sequence > self._expected:
            self.count += sequence - self._expected
            if len(self.found) < _MOST_GAPS:
                self.found.append(MissingRows(first=self._expected, last=sequence - 1))
        self._expected = sequence + 1


def find_missing(sequences: Iterable[int], *, first: int = 1) -> list[MissingRows]:
    """Return the first gaps in ascending sequence numbers."""
    finder = MissingFinder(first=first)
    for sequence in sequences:
        finder.note(sequence)
    return finder.found
