"""One epoch of one engine in the log: numbers its rows, and knows which nodes it was told of.

Everything that the engine is fed or answers passes here in the engine's own order, so that
`sequence` has no gaps when it leaves, and a gap in what is stored is a row that got lost. The order
of calls is the promise: a node is observed here before it is offered in an encoded candidate list.

`find_holes` is the other end: what a replay asks of the rows it has read back.
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
        """Say which nodes were offered, as the next row's input."""
        return self._nodes.encode(offered)

    def append(self, record: DecisionRecord) -> None:
        """Number a row and hand it to the log; never waits and never raises."""
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
        """Append that a document is in force now. Its text goes along each time, stored or not.

        So a document is kept for as long as any row that speaks of it.
        """
        inputs = {**record.inputs, "document": document.hash}
        self.append(replace(record, kind=RowKind.DOCUMENT, inputs=inputs, documents=(document,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """Rows that an epoch had and the log has not."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"rows {self.first} to {self.last} are missing"


def find_holes(sequences: Iterable[int], *, first: int = 1) -> list[Hole]:
    """Return the gaps in ascending sequence numbers; what is lost at the end cannot be seen."""
    holes: list[Hole] = []
    expected = first
    for sequence in sequences:
        if sequence > expected:
            holes.append(Hole(first=expected, last=sequence - 1))
        expected = sequence + 1
    return holes
