"""The rows of one epoch of one engine: numbers them, and tracks the nodes that were observed.

Every input and every decision of the engine is appended here, in the engine's own order. So
`sequence` has no gaps when rows are appended, and a gap in the stored rows is a lost row. Callers
observe a node here before they encode a candidate list that contains it.

`find_missing` finds lost rows for a replay.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from state.log.candidates import Encoded, KnownNodes
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, LoggedDocument, RowKind


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
        return f"rows {self.first} to {self.last} are missing"


def find_missing(sequences: Iterable[int], *, first: int = 1) -> list[MissingRows]:
    """Return the gaps in ascending sequence numbers; rows lost at the end cannot be found."""
    missing: list[MissingRows] = []
    expected = first
    for sequence in sequences:
        if sequence > expected:
            missing.append(MissingRows(first=expected, last=sequence - 1))
        expected = sequence + 1
    return missing
