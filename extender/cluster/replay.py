"""Repeat the decisions of one epoch from the log alone, row by row, on a separate engine.

A replay feeds the logged inputs to the engine, repeats each request, and compares the decision with
the logged one. With the same program all decisions are equal; with another program, the differences
show what that program would have decided.
"""

from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final, cast

from extender.cells.model import NO_LIMITS, Part, PlacedMember
from extender.cells.views.listings import run_to_end
from extender.cluster import rows
from extender.cluster.cluster import Cluster
from extender.cluster.journal import SERVICE, DecisionContext, NoJournal
from extender.cluster.order_replay import OrderReplay
from extender.cluster.reservation_replay import ReservationReplay
from extender.cluster.rows import Row
from policy.submission import GangKey, NodeName, PodUid
from state.log.candidates import KnownNodes
from state.log.epoch_journal import MissingFinder, MissingRows
from state.log.records import DecisionRecord, RowKind
from state.log.stretches import EpochReader, read_epoch

_MOST_DIFFERENCES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the engine knew when it was asked, as numbers and names."""

    nodes: int
    pods: int
    gangs: int
    document: str | None
    """The hash of the cluster document that was put in force last; None without one."""
    document_row: int
    """The number of the row that did so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A decision that the replay did not repeat."""

    sequence: int
    subject: str
    logged: Mapping[str, Any]
    replayed: Mapping[str, Any]
    record: DecisionRecord
    known: Known


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A row that could not be replayed; later rows were not looked at."""

    sequence: int
    subject: str
    error: str


@dataclass(slots=True, kw_only=True)
class Report:
    """The result of a replay."""

    epoch: int
    rows: int = 0
    decisions: int = 0
    of_kind: Counter[str] = field(default_factory=Counter)
    """The decisions by the kinds of their rows."""
    different: int = 0
    """How many decisions the replay did not repeat."""
    differences: list[Difference] = field(default_factory=list)
    """The first of them."""
    missing: list[MissingRows] = field(default_factory=list)
    """The first gaps: later decisions may differ for that reason alone."""
    missing_rows: int = 0
    stopped: Stopped | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def is_identical(self) -> bool:
        """Whether the replay repeated every decision."""
        return not self.different and not self.missing_rows and self.stopped is None


async def replay_epoch(reader: EpochReader, *, epoch: int, last: int | None = None) -> Report:
    """Replay one epoch of the log, up to the row `last`."""
    return await replay_rows(read_epoch(reader, SERVICE, epoch=epoch, last=last), epoch=epoch)


async def replay_rows(
    records: AsyncIterable[DecisionRecord],
    *,
    epoch: int,
    on_row: Callable[[DecisionRecord, Difference | None], None] = lambda *_: None,
) -> Report:
    """Replay the rows of one epoch, each with its documents; `on_row` is told of every row.

    Of the rows, nothing is kept beside what the engine keeps, and the first differences.
    """
    report, missing = Report(epoch=epoch), MissingFinder()
    report.missing = missing.found
    replay: Replay | None = None
    async for record in records:
        try:
            if replay is None:
                replay = Replay(lease_seconds=float(record.inputs.get("leaseSeconds", 60.0)))
            difference = replay.feed(record)
        except Exception as error:  # rows may be missing or damaged, and the engine another one
            said = f"{type(error).__name__}: {error}"
            report.stopped = Stopped(
                sequence=record.sequence or 0, subject=record.subject, error=said
            )
        else:
            _count(report, record, difference)
            on_row(record, difference)
        missing.note(record.sequence or 0)
        report.missing_rows = missing.count
        if report.stopped is not None:
            break
    return report


def _count(report: Report, record: DecisionRecord, difference: Difference | None) -> None:
    report.rows += 1
    report.first_at = report.first_at or record.at
    report.last_at = record.at
    if "decision" in record.details:
        report.decisions += 1
        report.of_kind[record.kind] += 1
    if difference is not None:
        report.different += 1
        if len(report.differences) < _MOST_DIFFERENCES:
            report.differences.append(difference)


class Replay:
    """A cluster that is fed with the rows of an epoch."""

    def __init__(self, *, lease_seconds: float) -> None:
        self._cluster = Cluster(lease_seconds=lease_seconds, journal=NoJournal())
        self._order = OrderReplay()
        self._reservations = ReservationReplay(self._cluster)
        self._known = KnownNodes()
        self._found: list[PlacedMember] = []
        self._released: list[PlacedMember] = []
        self._change: Iterator[None] = iter(())
        """The change whose steps follow."""
        self._document: tuple[str | None, int] = (None, 0)
        """The hash of the cluster document, and the number of the row that put it in force."""
        self.repeated: Row | None = None
        """What was decided in the last row; None if it holds no decision."""

    def feed(self, record: DecisionRecord) -> Difference | None:
        """Take in one row; return the difference if it holds a decision that is not repeated."""
        known, logged = self._known_now(), record.details.get("decision")
        replayed = self.repeated = self._repeat(record)
        if replayed is None or logged is None or rows.is_same_decision(logged, replayed):
            return None
        return Difference(
            sequence=record.sequence or 0,
            subject=record.subject,
            logged=logged,
            replayed=replayed,
            record=record,
            known=known,
        )

    def _repeat(self, record: DecisionRecord) -> Row | None:
        """Take in a row; return what is decided again, if it has a decision."""
        match record.kind:
            case RowKind.NODE:
                self._feed_node(record)
            case RowKind.DOCUMENT if record.outcome == "followed":
                self._order.use_policy(_content_of(record, record.inputs["policy"]))
            case RowKind.DOCUMENT:
                self._feed_document(record, self._text_of(record))
            case RowKind.POD:
                self._feed_pod(record)
            case RowKind.EXPIRY:
                self._feed_expiry(record)
            case RowKind.ORDERING | RowKind.RESERVATION if not record.inputs:
                return None  # a masked file has empty rows
            case RowKind.ORDERING:
                return self._order.decide(record)
            case RowKind.RESERVATION:
                return self._reservations.decide(record, self._order.queues, self._nodes)
            case _ if "decision" in record.details:
                return self._decide(record)
        return None

    def _feed_expiry(self, record: DecisionRecord) -> None:
        if record.outcome != "renewed":
            self._cluster.expire(now=record.inputs["now"])
            return
        namespace, _, name = record.subject.partition("/")
        gang = GangKey(namespace, name, record.inputs.get("owner", ""))
        self._cluster.renew(gang, now=record.inputs["now"])

    def _text_of(self, record: DecisionRecord) -> str | None:
        """Return the text of the cluster document that a row puts in force."""
        wanted = record.inputs.get("document")
        if wanted is None and record.outcome not in ("removing", "removed"):
            return None
        self._document = wanted, record.sequence or 0
        return None if wanted is None else _content_of(record, wanted)

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
        return Part(sizes=tuple(row["sizes"]), nodes=self._nodes(row["nodes"]))

    def _nodes(self, encoded: object) -> Set[NodeName]:
        return cast(Set[NodeName], self._known.decode(encoded))

    def _release(self, record: DecisionRecord) -> Row:
        """Return which places the pods have whose gates are lifted."""
        inputs, of_gang = record.inputs, self._cluster.members.of_gang
        told = inputs["pods"]
        pods = of_gang(GangKey(*inputs["gang"])) if told == "all" else told
        places = (self._cluster.placement(PodUid(uid)) for uid in sorted(pods))
        return rows.encode_release([one for one in places if one is not None])

    def _decide(self, record: DecisionRecord) -> Row:
        if record.kind == RowKind.RELEASE:
            return self._release(record)
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
        nodes = self._nodes(inputs["candidates"])
        request = rows.decode_request(inputs["request"])
        decision = self._cluster.decide(request, candidate_nodes=nodes, context=context)
        return rows.encode_decision(decision)

    def _known_now(self) -> Known:
        members, (document, row) = self._cluster.members, self._document
        return Known(
            nodes=len(self._known),
            pods=len(members),
            gangs=members.gang_count,
            document=document,
            document_row=row,
        )


def _content_of(record: DecisionRecord, wanted: str) -> str:
    """Return the text of a document that a row refers to."""
    for document in record.documents:
        if document.hash == wanted:
            return document.content
    raise ValueError(f"the log does not have document {wanted} any more")


def _priorities(record: DecisionRecord) -> dict[GangKey, int]:
    return {GangKey(*gang): rank for *gang, rank in record.inputs["priorities"]}


def _bound(record: DecisionRecord) -> PlacedMember:
    return PlacedMember(
        request=rows.decode_request(record.inputs["request"]),
        placement=rows.decode_placement(record.inputs["placement"]),
        foreign=rows.decode_foreign(record.inputs),
    )
