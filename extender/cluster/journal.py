"""Everything that the engine is told and answers, as rows of the decision log, in its own order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from extender.cells.model import Decision, MemberRequest, Place
from extender.cells.observe.bound_pods import PlacedMember
from extender.cluster import rows
from kube.read.nodes import KubeNode
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from state.log.epoch_journal import EpochJournal
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, Kind, LoggedDocument

SERVICE = "extender"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One plan that was made, with all that it was made from."""

    kind: Kind
    request: MemberRequest
    candidate_nodes: Collection[NodeName]
    now: float
    """When it was asked."""
    applies_preemption: bool
    decision: Decision
    pod: str = ""
    """`namespace/name`, for people."""


class Journal(Protocol):
    """Who is told of every step of the engine; a replay tells nobody."""

    def begin(self, *, lease_seconds: float) -> None:
        """An engine begins to live."""

    def observe_node(self, node: KubeNode) -> None:
        """A node joined or changed."""

    def forget_node(self, name: NodeName) -> None:
        """A node left."""

    def use_document(self, text: str | None) -> None:
        """Another cluster document is in force, or none."""

    def build_topology(self) -> None:
        """Cells were built from the document and the nodes that are known."""

    def rerank(self, priorities: Mapping[GangKey, int]) -> None:
        """Gangs count at other priorities, since their classes do."""

    def prepare(self, running: PlacedMember) -> None:
        """A member was found running at start-up; `recover` takes all of them in."""

    def prepare_released(self, released: PlacedMember) -> None:
        """A member was found on its way to its place; `recover` leases it again."""

    def recover(self, count: int, *, now: float) -> None:
        """The members that were prepared were taken in."""

    def observe_bound(self, running: PlacedMember) -> None:
        """A member runs."""

    def observe_ending(self, member: PodUid) -> None:
        """A member that runs was told to end."""

    def observe_overdue(self, member: PodUid) -> None:
        """A member that was told to end takes too long."""

    def forget_member(self, member: PodUid) -> None:
        """A member ended."""

    def expire(self, gangs: Sequence[GangKey], *, now: float) -> None:
        """Leases ended."""

    def renew(self, gang: GangKey, *, now: float) -> None:
        """A lease began anew."""

    def decide(self, question: Question) -> None:
        """The engine was asked, and what it answered was applied."""

    def note(self, kind: Kind, subject: str, outcome: str, reason: str, **fields: Any) -> None:  # noqa: ANN401 - of the record
        """Something else was done; a replay passes over it."""


class NoJournal:
    """Tells nobody."""

    def __getattr__(self, _: str) -> Any:  # noqa: ANN401 - any step of the protocol
        return lambda *_, **__: None


class LogJournal:
    """Writes one epoch of one engine into the decision log."""

    def __init__(self, log: DecisionLog, *, epoch: int, clock: Clock) -> None:
        self._rows = EpochJournal(log, epoch=epoch)
        self._clock = clock

    @property
    def epoch(self) -> int:
        """Which term its rows are of."""
        return self._rows.epoch

    @property
    def sequence(self) -> int:
        """The number of the last row."""
        return self._rows.sequence

    def begin(self, *, lease_seconds: float) -> None:
        """An engine begins to live."""
        inputs = {"leaseSeconds": lease_seconds}
        self._rows.append(self._record(Kind.DOCUMENT, "settings", "begun", inputs=inputs))

    def observe_node(self, node: KubeNode) -> None:
        """A node joined or changed."""
        record = self._record(
            Kind.NODE, node.name, "observed", inputs={"node": rows.encode_node(node)}
        )
        self._rows.observe_node(record, is_gone=False)

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._rows.observe_node(self._record(Kind.NODE, name, "gone"), is_gone=True)

    def use_document(self, text: str | None) -> None:
        """Another cluster document is in force, or none."""
        record = self._record(Kind.DOCUMENT, "cluster", "removed" if text is None else "in-force")
        if text is None:
            self._rows.append(record)
        else:
            self._rows.observe_document(record, LoggedDocument(kind="Cluster", content=text))

    def build_topology(self) -> None:
        """Cells were built from the document and the nodes that are known."""
        self._rows.append(self._record(Kind.DOCUMENT, "cluster", "built"))

    def rerank(self, priorities: Mapping[GangKey, int]) -> None:
        """Gangs count at other priorities, since their classes do."""
        told = [[gang.namespace, gang.name, rank] for gang, rank in sorted(priorities.items())]
        inputs = {"priorities": told}
        self._rows.append(self._record(Kind.DOCUMENT, "classes", "reranked", inputs=inputs))

    def prepare(self, running: PlacedMember) -> None:
        """A member was found running at start-up."""
        self._append_bound("found", running)

    def prepare_released(self, released: PlacedMember) -> None:
        """A member was found on its way to its place."""
        self._append_bound("released", released)

    def recover(self, count: int, *, now: float) -> None:
        """The members that were prepared were taken in."""
        reason = f"took in {count} pods"
        self._rows.append(
            self._record(Kind.POD, "cluster", "recovered", reason, inputs={"now": now})
        )

    def observe_bound(self, running: PlacedMember) -> None:
        """A member runs."""
        self._append_bound("runs", running)

    def observe_ending(self, member: PodUid) -> None:
        """A member that runs was told to end."""
        self._rows.append(self._record(Kind.POD, member, "ending", pod_uid=member))

    def observe_overdue(self, member: PodUid) -> None:
        """A member that was told to end takes too long."""
        self._rows.append(self._record(Kind.POD, member, "overdue", pod_uid=member))

    def forget_member(self, member: PodUid) -> None:
        """A member ended."""
        self._rows.append(self._record(Kind.POD, member, "ended", pod_uid=member))

    def expire(self, gangs: Sequence[GangKey], *, now: float) -> None:
        """Leases ended."""
        reason = ", ".join(map(str, gangs))
        self._rows.append(
            self._record(Kind.EXPIRY, "leases", "expired", reason, inputs={"now": now})
        )

    def renew(self, gang: GangKey, *, now: float) -> None:
        """A lease began anew."""
        self._rows.append(self._record(Kind.EXPIRY, str(gang), "renewed", inputs={"now": now}))

    def decide(self, question: Question) -> None:
        """The engine was asked, and what it answered was applied."""
        request, decision = question.request, question.decision
        if isinstance(decision, Place):
            outcome, reason = "placed", f"placed on {decision.placement.node}"
        else:
            outcome, reason = str(decision.code), decision.reason
        inputs = {
            "request": rows.encode_request(request),
            "candidates": self._rows.encode_candidates(question.candidate_nodes),
            "now": question.now,
            "appliesPreemption": question.applies_preemption,
        }
        details = {
            "pod": question.pod,
            "leafCount": request.leaf_count,
            "decision": rows.encode_decision(decision),
        }
        self._rows.append(
            self._record(
                question.kind,
                str(request.gang),
                outcome,
                reason,
                pod_uid=request.member,
                latency_seconds=self._clock.monotonic() - question.now,
                details=details,
                inputs=inputs,
            )
        )

    def note(self, kind: Kind, subject: str, outcome: str, reason: str, **fields: Any) -> None:  # noqa: ANN401 - of the record
        """Write down something else that was done; a replay passes over it."""
        self._rows.append(self._record(kind, subject, outcome, reason, **fields))

    def _append_bound(self, outcome: str, running: PlacedMember) -> None:
        inputs = {
            "request": rows.encode_request(running.request),
            "placement": rows.encode_placement(running.placement),
        }
        record = self._record(
            Kind.POD,
            str(running.request.gang),
            outcome,
            f"on {running.placement.node}",
            pod_uid=running.request.member,
            inputs=inputs,
        )
        self._rows.append(record)

    def _record(
        self,
        kind: Kind,
        subject: str,
        outcome: str,
        reason: str = "",
        *,
        latency_seconds: float = 0.0,
        **fields: Any,  # noqa: ANN401 - of the record
    ) -> DecisionRecord:
        return DecisionRecord(
            at=self._clock.now(),
            service=SERVICE,
            kind=kind,
            subject=subject,
            outcome=outcome,
            reason=reason,
            latency_seconds=latency_seconds,
            **fields,
        )
