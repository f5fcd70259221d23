"""Repeat the decisions of one epoch from the log alone, row by row, on a separate engine.

A replay feeds the logged inputs to the engine, repeats each request, and compares the decision with
the logged one. With the same program all decisions are equal; with another program, the differences
show what that program would have decided.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol

from extender.cells.model import NO_LIMITS, Part, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster import rows
from extender.cluster.cluster import Cluster
from extender.cluster.journal import SERVICE, DecisionContext, NoJournal
from policy.submission import GangKey, NodeName, PodUid
from state.log.candidates import KnownNodes
from state.log.epoch_journal import MissingRows, find_missing
from state.log.records import DecisionRecord, LoggedDocument, RowKind

_PAGE: Final = 2000


class LogReader(Protocol):
    """The log as a replay reads it: `state.log.postgres`, or its twin in memory for tests."""

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return rows of one epoch from a sequence number on, in that order."""

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that a row refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A decision that the replay did not repeat."""

    sequence: int
    subject: str
    logged: Mapping[str, Any]
    replayed: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of a replay."""

    epoch: int
    rows: int = 0
    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    missing: list[MissingRows] = field(default_factory=list)
    """Rows that are missing: later decisions may differ for that reason alone."""

    @property
    def is_identical(self) -> bool:
        """Whether the replay repeated every decision."""
        return not self.differences and not self.missing


async def replay_epoch(reader: LogReader, *, epoch: int) -> Report:
    """Replay one epoch."""
    report = Report(epoch=epoch)
    replay: Replay | None = None
    sequences: list[int] = []
    async for record in _read(reader, epoch):
        if replay is None:
            replay = Replay(lease_seconds=float(record.inputs.get("leaseSeconds", 60.0)))
        sequences.append(record.sequence or 0)
        document = await _document_of(reader, record)
        difference = replay.feed(record, document)
        report.rows += 1
        report.decisions += "decision" in record.details
        if difference is not None:
            report.differences.append(difference)
    report.missing = find_missing(sequences)
    return report


async def _read(reader: LogReader, epoch: int) -> AsyncIterator[DecisionRecord]:
    first = 1
    while page := await reader.of_epoch(SERVICE, epoch=epoch, first=first, limit=_PAGE):
        for record in page:
            yield record
        first = (page[-1].sequence or 0) + 1


async def _document_of(reader: LogReader, record: DecisionRecord) -> str | None:
    wanted = record.inputs.get("document")
    stored = await reader.document(wanted) if wanted else None
    return stored.content if stored else None


class Replay:
    """A cluster that is fed with the rows of an epoch."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        self._known = KnownNodes()
        self._found: list[PlacedMember] = []
        self._released: list[PlacedMember] = []
        self._change: Iterator[None] = iter(())
        """The change whose steps follow."""

    def feed(self, record: DecisionRecord, document: str | None) -> Difference | None:
        """Take in one row; return the difference if it holds a decision that is not repeated."""
        match record.kind, record.outcome:
            case RowKind.NODE, _:
                self._feed_node(record)
            case RowKind.DOCUMENT, _:
                self._feed_document(record, document)
            case RowKind.POD, _:
                self._feed_pod(record)
            case RowKind.EXPIRY, "renewed":
                namespace, _, name = record.subject.partition("/")
                gang = GangKey(namespace, name, record.inputs.get("owner", ""))
                self._cluster.renew(gang, now=record.inputs["now"])
            case RowKind.EXPIRY, _:
                self._cluster.expire(now=record.inputs["now"])
            case _ if "decision" in record.details:
                return self._decide(record)
        return None

    def _feed_document(self, record: DecisionRecord, document: str | None) -> None:
        match record.outcome:
            case "changing" | "removing":
                self._change = self._cluster.use_document_stepwise(document)
            case "building":
                self._change = self._cluster.refresh_topology_stepwise()
            case "reranking":
                self._change = self._cluster.rerank_stepwise(_priorities(record))
            case "advanced":
                is_last = record.inputs.get("isLast", False)
                for _ in self._change if is_last else islice(self._change, record.inputs["steps"]):
                    pass
            case "suspended" | "resumed":
                is_suspended = record.outcome == "suspended"
                self._cluster.suspend_preemption(is_suspended=is_suspended)
            case "raised":
                gang = GangKey(*record.inputs["gang"])
                self._cluster.raise_gang(gang, record.inputs["priority"])
            case _:
                self._feed_whole_change(record, document)

    def _feed_whole_change(self, record: DecisionRecord, document: str | None) -> None:
        """Take in a change that an older version made in one step."""
        match record.outcome:
            case "in-force" | "removed":
                self._cluster.use_document(document)
            case "built":
                self._cluster.refresh_topology()
            case "reranked":
                self._cluster.rerank(_priorities(record))

    def _feed_node(self, record: DecisionRecord) -> None:
        name = NodeName(record.subject)
        if record.outcome == "gone":
            self._known.forget(name)
            self._cluster.forget_node(name)
        else:
            self._known.observe(name)
            self._cluster.observe_node(rows.decode_node(name, record.inputs["node"]))

    def _feed_pod(self, record: DecisionRecord) -> None:
        match record.outcome:
            case "found":
                self._found.append(_bound(record))
            case "released":
                self._released.append(_bound(record))
            case "recovered":
                now = record.inputs.get("now", 0.0)
                run_to_end(
                    self._cluster.recover_stepwise(self._found, released=self._released, now=now)
                )
                self._found, self._released = [], []
            case "runs":
                self._cluster.observe_bound(_bound(record))
            case "ending":
                self._cluster.observe_ending(PodUid(record.pod_uid or ""))
            case "overdue":
                self._cluster.observe_overdue(PodUid(record.pod_uid or ""))
            case "budget":
                gang = GangKey(*record.inputs["gang"])
                self._cluster.observe_budget(gang, breaks=record.inputs["breaks"])
            case "minimum-run":
                gang = GangKey(*record.inputs["gang"])
                self._cluster.observe_minimum_run(gang, seconds=record.inputs["seconds"])
            case "ended":
                self._cluster.forget_member(PodUid(record.pod_uid or ""))

    def _part(self, row: Mapping[str, Any]) -> Part:
        nodes = {NodeName(name): None for name in self._known.decode(row["nodes"])}
        return Part(sizes=tuple(row["sizes"]), nodes=nodes)

    def _decide(self, record: DecisionRecord) -> Difference | None:
        inputs = record.inputs
        context = DecisionContext(
            kind=RowKind(record.kind),
            now=inputs["now"],
            applies_preemption=inputs["appliesPreemption"],
            limits=inputs.get("limits", NO_LIMITS),
            parts=[self._part(part) for part in inputs.get("parts", ())],
            kept=[rows.decode_seat(seat) for seat in inputs.get("kept", ())],
            facts=rows.decode_facts(inputs),
        )
        nodes = {NodeName(name): None for name in self._known.decode(inputs["candidates"])}
        request = rows.decode_request(inputs["request"])
        decision = self._cluster.decide(request, candidate_nodes=nodes, context=context)
        replayed = rows.encode_decision(decision)
        logged = record.details["decision"]
        if rows.is_same_decision(logged, replayed):
            return None
        return Difference(
            sequence=record.sequence or 0,
            subject=record.subject,
            logged=logged,
            replayed=replayed,
        )


def _priorities(record: DecisionRecord) -> dict[GangKey, int]:
    return {GangKey(*gang): rank for *gang, rank in record.inputs["priorities"]}


def _bound(record: DecisionRecord) -> PlacedMember:
    return PlacedMember(
        request=rows.decode_request(record.inputs["request"]),
        placement=rows.decode_placement(record.inputs["placement"]),
        foreign=rows.decode_foreign(record.inputs),
    )
