"""The nodes that were seen lately, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.seen_nodes import SEEN_DAYS
from policy.errors import BackendError, ConflictError
from policy.submission import NodeName
from state.ledger.ledger import LeaderTerm

_Pairs = tuple[tuple[str, int], ...]
_Labels = tuple[tuple[str, str], ...]


@dataclass
class _Row:
    labels: dict[str, str]
    cpu: int | None = None
    memory: int | None = None
    left_at: datetime | None = None


@dataclass
class MemorySeenNodes:
    """SeenNodes without a database."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    fails: bool = False
    rows: dict[tuple[NodeName, _Pairs], _Row] = field(default_factory=dict)
    epoch: int = 0
    changes: int = 0

    async def observe(
        self, nodes: Sequence[LiveNode], *, gone: Sequence[NodeName], term: LeaderTerm
    ) -> None:
        self._fence(term)
        now = self.clock()
        for name in gone:
            self._leave(name, now)
        for node in nodes:
            key = node.name, tuple(sorted(node.leaf_counts.items()))
            row = _Row(dict(node.labels), node.cpu, node.memory)
            if self.rows.get(key) != row:
                self._leave(node.name, now)
                self.rows[key] = row
                self.changes += 1
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
        groups: dict[tuple[_Pairs, _Labels], list[_Row]] = {}
        for pairs, row in largest.values():
            labels = tuple(sorted((key, row.labels[key]) for key in keys if key in row.labels))
            groups.setdefault((pairs, labels), []).append(row)
        return tuple(
            NodeCount(
                labels=dict(labels),
                leaf_counts=dict(pairs),
                number=len(rows),
                cpu=_most([row.cpu for row in rows]),
                memory=_most([row.memory for row in rows]),
            )
            for (pairs, labels), rows in sorted(groups.items())
        )

    async def present(self) -> tuple[LiveNode, ...]:
        here = ((name, dict(pairs), row) for (name, pairs), row in self.rows.items())
        found = [
            LiveNode(
                name=name, leaf_counts=counts, labels=row.labels, cpu=row.cpu, memory=row.memory
            )
            for name, counts, row in here
            if row.left_at is None
        ]
        return tuple(sorted(found, key=lambda node: node.name))

    async def version(self) -> int:
        if self.fails:
            raise BackendError("no database")
        return self.changes

    def _leave(self, name: NodeName, now: datetime) -> None:
        for (other, _), row in self.rows.items():
            if other == name and row.left_at is None:
                row.left_at = now
                self.changes += 1

    def _counts(self, row: _Row) -> bool:
        kept = timedelta(days=SEEN_DAYS)
        return row.left_at is None or row.left_at > self.clock() - kept

    def _fence(self, term: LeaderTerm) -> None:
        if self.fails:
            raise BackendError("no database")
        if term.epoch < self.epoch:
            raise ConflictError("another leader writes now")
        self.epoch = term.epoch


def _most(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return max(known) if len(known) == len(amounts) else None


def _total(pairs: _Pairs) -> int:
    return sum(count for _, count in pairs)
