"""Decide again from the log alone: one epoch, row by row, on an engine of its own.

Observations are fed to the engine, questions are asked again, and each answer is compared with the
one in the log. Under the same program every answer must be the same; under another one, what
differs is what that program would have done.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from extender.cells.observe.bound_pods import PlacedMember
from extender.cluster import rows
from extender.cluster.cluster import Asked, Cluster
from extender.cluster.document_text import ClusterText, read_cluster_text
from extender.cluster.journal import SERVICE, NoJournal
from policy.submission import GangKey, NodeName, PodUid
from state.log.candidates import KnownNodes
from state.log.epoch_journal import Hole, find_holes
from state.log.records import DecisionRecord, Kind, LoggedDocument

_PAGE: Final = 2000


class LogReader(Protocol):
    """What a replay reads: `state.log.postgres` or `state.log.memory`."""

    async def of_epoch(
        self, service: str, *, epoch: int, first: int = 1, limit: int = 1000
    ) -> list[DecisionRecord]:
        """Return rows of one epoch from a sequence number on, in that order."""

    async def document(self, document_hash: str) -> LoggedDocument | None:
        """Return a document that a row refers to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A decision that came out otherwise."""

    sequence: int
    subject: str
    logged: Mapping[str, Any]
    replayed: Mapping[str, Any]


@dataclass(slots=True, kw_only=True)
class Report:
    """What a replay found."""

    epoch: int
    rows: int = 0
    decisions: int = 0
    differences: list[Difference] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    """Rows that got lost: what comes after them may differ for that reason alone."""

    @property
    def is_identical(self) -> bool:
        """Whether every decision came out as it had."""
        return not self.differences and not self.holes


async def replay_epoch(reader: LogReader, *, epoch: int) -> Report:
    """Decide one epoch again."""
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
    report.holes = find_holes(sequences)
    return report


async def _read(reader: LogReader, epoch: int) -> AsyncIterator[DecisionRecord]:
    first = 1
    while page := await reader.of_epoch(SERVICE, epoch=epoch, first=first, limit=_PAGE):
        for record in page:
            yield record
        first = (page[-1].sequence or 0) + 1


async def _document_of(reader: LogReader, record: DecisionRecord) -> ClusterText | None:
    wanted = record.inputs.get("document")
    stored = await reader.document(wanted) if wanted else None
    return read_cluster_text(stored.content) if stored else None


class Replay:
    """An engine that lives through an epoch once more."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        self._known = KnownNodes()
        self._found: list[PlacedMember] = []
        self._released: list[PlacedMember] = []

    def feed(self, record: DecisionRecord, document: ClusterText | None) -> Difference | None:
        """Take in one row; the difference, if it is a decision that comes out otherwise."""
        match record.kind, record.outcome:
            case Kind.NODE, _:
                self._feed_node(record)
            case Kind.DOCUMENT, "built":
                self._cluster.refresh_topology()
            case Kind.DOCUMENT, "in-force" | "removed":
                self._cluster.use_document(document)
            case Kind.DOCUMENT, "reranked":
                told = record.inputs["priorities"]
                self._cluster.rerank({GangKey(*gang): rank for *gang, rank in told})
            case Kind.POD, _:
                self._feed_pod(record)
            case Kind.EXPIRY, "renewed":
                self._cluster.renew(_gang(record.subject), now=record.inputs["now"])
            case Kind.EXPIRY, _:
                self._cluster.expire(now=record.inputs["now"])
            case _ if "decision" in record.details:
                return self._decide(record)
        return None

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
                self._cluster.recover(self._found, released=self._released, now=now)
                self._found, self._released = [], []
            case "runs":
                self._cluster.observe_bound(_bound(record))
            case "ending":
                self._cluster.observe_ending(PodUid(record.pod_uid or ""))
            case "overdue":
                self._cluster.observe_overdue(PodUid(record.pod_uid or ""))
            case "ended":
                self._cluster.forget_member(PodUid(record.pod_uid or ""))

    def _decide(self, record: DecisionRecord) -> Difference | None:
        inputs = record.inputs
        asked = Asked(
            kind=Kind(record.kind),
            now=inputs["now"],
            applies_preemption=inputs["appliesPreemption"],
        )
        nodes = {NodeName(name): None for name in self._known.decode(inputs["candidates"])}
        request = rows.decode_request(inputs["request"])
        decision = self._cluster.decide(request, candidate_nodes=nodes, asked=asked)
        replayed = rows.encode_decision(decision)
        logged = record.details["decision"]
        if replayed == logged:
            return None
        return Difference(
            sequence=record.sequence or 0,
            subject=record.subject,
            logged=logged,
            replayed=replayed,
        )


def _gang(subject: str) -> GangKey:
    return GangKey(*subject.split("/", 1))


def _bound(record: DecisionRecord) -> PlacedMember:
    return PlacedMember(
        request=rows.decode_request(record.inputs["request"]),
        placement=rows.decode_placement(record.inputs["placement"]),
    )
