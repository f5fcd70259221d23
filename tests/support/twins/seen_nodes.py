"""The nodes that were seen lately, in memory."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.seen_nodes import SEEN_DAYS
from policy.errors import BackendError, ConflictError
from policy.submission import NodeName
from state.ledger.ledger import LeaderTerm

_Pairs = tuple[tuple[str, int], ...]


@dataclass
class _Row:
    labels: dict[str, str]
    left_at: datetime | None = None


@dataclass
class MemorySeenNodes:
    """SeenNodes without a database."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    fails: bool = False
    rows: dict[tuple[NodeName, _Pairs], _Row] = field(default_factory=dict)
    epoch: int = 0

    async def observe(
        self, nodes: Sequence[LiveNode], *, gone: Sequence[NodeName], term: LeaderTerm
    ) -> None:
        self._fence(term)
        now = self.clock()
        for name in gone:
            self._leave(name, now)
        for node in nodes:
            self._leave(node.name, now)
            self.rows[node.name, tuple(sorted(node.leaf_counts.items()))] = _Row(dict(node.labels))
        self.rows = {key: row for key, row in self.rows.items() if self._counts(row)}

    async def retain(self, names: Sequence[NodeName], *, term: LeaderTerm) -> None:
        self._fence(term)
        for name, _ in list(self.rows):
            if name not in names:
                self._leave(name, self.clock())

    async def count(self, keys: Sequence[str]) -> tuple[NodeCount, ...]:
        if self.fails:
            raise BackendError("no database")
        largest: dict[NodeName, tuple[_Pairs, _Row]] = {}
        for (name, pairs), row in self.rows.items():
            known = largest.get(name)
            if self._counts(row) and (known is None or _total(pairs) > _total(known[0])):
                largest[name] = pairs, row
        groups = Counter(
            (pairs, tuple(sorted((key, row.labels[key]) for key in keys if key in row.labels)))
            for pairs, row in largest.values()
        )
        return tuple(
            NodeCount(labels=dict(labels), leaf_counts=dict(pairs), number=number)
            for (pairs, labels), number in sorted(groups.items())
        )

    def _leave(self, name: NodeName, now: datetime) -> None:
        for (other, _), row in self.rows.items():
            if other == name and row.left_at is None:
                row.left_at = now

    def _counts(self, row: _Row) -> bool:
        kept = timedelta(days=SEEN_DAYS)
        return row.left_at is None or row.left_at > self.clock() - kept

    def _fence(self, term: LeaderTerm) -> None:
        if self.fails:
            raise BackendError("no database")
        if term.epoch < self.epoch:
            raise ConflictError("another leader writes now")
        self.epoch = term.epoch


def _total(pairs: _Pairs) -> int:
    return sum(count for _, count in pairs)
