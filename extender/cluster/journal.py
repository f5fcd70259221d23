"""Rows of the decision log: every input of the engine and every decision, in their order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from extender.cells.model import NO_FACTS, Decision, Part, Place, PlacedMember, Seat, WaitFacts
from extender.cluster import order_rows, reservation_rows, rows
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.rank_changes import OrderChange, RankChange
from extender.queue.reserve.model import ReservationChange, ReservationStep
from kube.read.nodes import KubeNode
from policy.placement import Placement
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from service.memory import BoundedMap
from state.log.epoch_journal import EpochJournal
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, LoggedDocument, RowKind

SERVICE = "extender"
_MOST_PLANS: Final = 20_000
"""Gangs between their plan and the lifting of their gates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionContext:
    """What belongs to a question beside the request and the candidate nodes."""

    kind: RowKind
    """How the log classifies the decision."""
    now: float
    applies_preemption: bool = False
    """Whether a preemption reserves cells; otherwise it is only reported."""
    pod: str = ""
    """`namespace/name`, for readers of the log."""
    limits: Mapping[NodeName, int] = field(default_factory=dict)
    """Of some nodes: how many idle leaf cells the gang may use there at most."""
    parts: Sequence[Part] = ()
    """The members by the nodes that they may use, where these differ."""
    kept: Sequence[Seat] = ()
    """Seats that are reserved for other gangs of its VC."""
    facts: WaitFacts = NO_FACTS
    """What the reason says beyond what the engine knows."""


class NoJournal:
    """Drops everything: a replay writes nothing."""

    def __getattr__(self, _: str) -> Any:  # noqa: ANN401 - any method of `LogJournal`
        return lambda *_, **__: None


class LogJournal:
    """Writes the rows of one epoch to the decision log."""

    def __init__(self, log: DecisionLog, *, epoch: int, clock: Clock) -> None:
        self._rows = EpochJournal(log, epoch=epoch)
        self._clock = clock
        self._steps = 0
        """Steps of the change under way that no row tells of yet."""
        self._is_complete = False
        """Whether the last of them completed the change."""
        self._plans: BoundedMap[GangKey, int] = BoundedMap(_MOST_PLANS)
        """The row that placed a gang last."""

    @property
    def epoch(self) -> int:
        """The leadership term of its rows."""
        return self._rows.epoch

    @property
    def sequence(self) -> int:
        """The number of the last row."""
        return self._rows.sequence

    def begin(self, *, lease_seconds: float) -> None:
        """A new engine starts."""
        inputs = {"leaseSeconds": lease_seconds}
        self.note(RowKind.DOCUMENT, "settings", "begun", inputs=inputs)

    def observe_node(self, node: KubeNode) -> None:
        """A node joined or changed."""
        record = self._record(
            RowKind.NODE, node.name, "observed", inputs={"node": rows.encode_node(node)}
        )
        self._note_steps()
        self._rows.observe_node(record, is_gone=False)

    def forget_node(self, name: NodeName) -> None:
        """A node left."""
        self._note_steps()
        self._rows.observe_node(self._record(RowKind.NODE, name, "gone"), is_gone=True)

    def change_document(self, text: str | None) -> None:
        """Another cluster document is about to be in force, or none; its steps follow."""
        outcome = "removing" if text is None else "changing"
        record = self._record(RowKind.DOCUMENT, "cluster", outcome)
        self._note_steps()
        if text is None:
            self._rows.append(record)
        else:
            self._rows.observe_document(record, LoggedDocument(kind="Cluster", content=text))

    def refresh_topology(self) -> None:
        """Cells are built from the document and the nodes that are known; the steps follow."""
        self.note(RowKind.DOCUMENT, "cluster", "building")

    def change_priorities(self, priorities: Mapping[GangKey, int]) -> None:
        """Gangs get other priorities, because their classes changed; the steps follow."""
        told = [[*rows.encode_gang(gang), rank] for gang, rank in sorted(priorities.items())]
        self.note(RowKind.DOCUMENT, "classes", "reranking", inputs={"priorities": told})

    def suspend_preemption(self, *, is_suspended: bool) -> None:
        """No gang is preempted for a while, or gangs may be preempted again."""
        self.note(RowKind.DOCUMENT, "classes", "suspended" if is_suspended else "resumed")

    def advance(self) -> None:
        """One more step of the change that was begun; a row tells of all before the next row."""
        self._steps += 1

    def complete(self) -> None:
        """The last step has completed the change; other versions may need another number."""
        self._is_complete = True

    def _note_steps(self) -> None:
        if self._steps:
            inputs = {"steps": self._steps, **({"isLast": True} if self._is_complete else {})}
            self._steps, self._is_complete = 0, False
            record = self._record(RowKind.DOCUMENT, "cluster", "advanced", inputs=inputs)
            self._rows.append(record)

    def raise_gang(self, gang: GangKey, priority: int) -> None:
        """One gang has a higher priority, because its effective class was raised."""
        inputs = {"gang": rows.encode_gang(gang), "priority": priority}
        self.note(RowKind.DOCUMENT, "classes", "raised", inputs=inputs)

    def prepare(self, running: PlacedMember) -> None:
        """A member was found running at start-up; `recover` follows."""
        self._append_bound("found", running)

    def prepare_released(self, released: PlacedMember) -> None:
        """A member was found released and not bound at start-up; `recover` follows."""
        self._append_bound("released", released)

    def recover(self, count: int, *, now: float) -> None:
        """The engine took in the members that were prepared."""
        reason = f"recovered {count} pods"
        self.note(RowKind.POD, "cluster", "recovered", reason, inputs={"now": now})

    def observe_bound(self, running: PlacedMember) -> None:
        """A member runs."""
        self._append_bound("runs", running)

    def observe_ending(self, member: PodUid) -> None:
        """A member that runs was told to end."""
        self.note(RowKind.POD, member, "ending", pod_uid=member)

    def observe_overdue(self, member: PodUid) -> None:
        """A member that was told to end takes too long."""
        self.note(RowKind.POD, member, "overdue", pod_uid=member)

    def observe_budget(self, gang: GangKey, *, breaks: bool) -> None:
        """Whether ending a gang breaks a PodDisruptionBudget has changed."""
        inputs = {"gang": rows.encode_gang(gang), "breaks": breaks}
        self.note(RowKind.POD, str(gang), "budget", inputs=inputs)

    def observe_minimum_run(self, gang: GangKey, *, seconds: int) -> None:
        """A gang has begun a minimum run, or it is over."""
        inputs = {"gang": rows.encode_gang(gang), "seconds": seconds}
        self.note(RowKind.POD, str(gang), "minimum-run", inputs=inputs)

    def forget_member(self, member: PodUid) -> None:
        """A member ended."""
        self.note(RowKind.POD, member, "ended", pod_uid=member)

    def expire(self, gangs: Sequence[GangKey], *, now: float) -> None:
        """Leases expired."""
        reason = ", ".join(map(str, gangs))
        self.note(RowKind.EXPIRY, "leases", "expired", reason, inputs={"now": now})

    def renew(self, gang: GangKey, *, now: float) -> None:
        """A lease was started again."""
        owner = {"owner": gang.owner} if gang.owner else {}
        self.note(RowKind.EXPIRY, str(gang), "renewed", inputs={"now": now, **owner})

    def decide(
        self, decision: Decision, *, candidate_nodes: Collection[NodeName], context: DecisionContext
    ) -> None:
        """The engine made a decision, and it was applied."""
        request = decision.request
        if isinstance(decision, Place):
            outcome, reason = "placed", rows.describe_place(decision, context.facts.tried)
        else:
            outcome, reason = str(decision.reason.code), decision.reason.text
        inputs: dict[str, Any] = {
            "request": rows.encode_request(request),
            "candidates": self._rows.encode_candidates(candidate_nodes),
            "now": context.now,
            "appliesPreemption": context.applies_preemption,
        }
        if context.limits:
            inputs["limits"] = {**context.limits}
        if context.parts:
            inputs["parts"] = [
                {"sizes": part.sizes, "nodes": self._rows.encode_candidates(part.nodes)}
                for part in context.parts
            ]
        if context.kept:
            inputs["kept"] = [rows.encode_seat(seat) for seat in context.kept]
        inputs |= rows.encode_facts(context.facts)
        details = {
            "pod": context.pod,
            "leafCount": request.leaf_count,
            "decision": rows.encode_decision(decision),
        }
        if isinstance(decision, Place):
            self._plans[request.gang] = self.sequence + 1
        self.note(
            context.kind,
            str(request.gang),
            outcome,
            reason,
            pod_uid=request.member,
            latency_seconds=self._clock.monotonic() - context.now,
            details=details,
            inputs=inputs,
        )

    # -- the queue

    def follow_policy(self, content: str) -> None:
        """Gangs are ordered and get reservations by another document, or other classes."""
        document = LoggedDocument(kind="policy", content=content)
        inputs = {"policy": document.hash}
        self.note(RowKind.DOCUMENT, "queues", "followed", inputs=inputs, documents=(document,))

    def rank(self, change: RankChange, order: GangOrder) -> None:
        """A gang is ranked for the first time, or by other facts than before."""
        decision = order_rows.encode_standing(change.standing, change.rank)
        self.note(
            RowKind.ORDERING,
            str(change.gang),
            "ranked",
            f"in level {change.standing.level_name}",
            details={"decision": decision},
            inputs=order_rows.encode_rank(change, order),
        )

    def leave_order(self, gang: GangKey) -> None:
        """A gang is not ranked any more."""
        inputs = {"gang": rows.encode_gang(gang)}
        self.note(RowKind.ORDERING, str(gang), "left", inputs=inputs)

    def reorder(self, change: OrderChange, order: GangOrder) -> None:
        """Many gangs are ranked anew, by numbers that they share, or by another document."""
        decision = order_rows.encode_sum(change.gangs, change.checksum)
        self.note(
            RowKind.ORDERING,
            "queue",
            "reordered",
            details={"decision": decision},
            inputs=order_rows.encode_order(change, order),
        )

    def reserve(self, change: ReservationChange, reason: str) -> None:
        """A reservation was made, has changed or has ended."""
        one, inputs = change.after, reservation_rows.encode_change(change)
        if change.found is not None:
            inputs["candidates"] = self._rows.encode_candidates(change.found.search.nodes)
        details: dict[str, Any] = {}
        if change.step is ReservationStep.SLIPPED:
            details["decision"] = reservation_rows.encode_overrun(one)
        elif change.is_decided:
            details["decision"] = reservation_rows.encode_reservation(one)
        elif one.end is not None:
            details["end"] = str(one.end)
        else:
            details["reservation"] = reservation_rows.encode_body(one)
        subject = f"entry {one.entry}" if one.entry is not None else str(one.gang)
        self.note(RowKind.RESERVATION, subject, change.step, reason, details=details, inputs=inputs)

    def release(
        self, gang: GangKey, placements: Mapping[PodUid, Placement], *, is_whole: bool
    ) -> None:
        """The gates of pods are lifted; `is_whole`: of all members of the gang that have places."""
        pods = sorted(placements)
        inputs = {"gang": rows.encode_gang(gang), "pods": "all" if is_whole else pods}
        decision = rows.encode_release([placements[uid] for uid in pods])
        details = {"decision": decision, "plan": self._plans.get(gang)}
        told = "1 gate is" if len(pods) == 1 else f"{len(pods)} gates are"
        self.note(
            RowKind.RELEASE,
            str(gang),
            "released",
            f"{told} lifted",
            details=details,
            inputs=inputs,
        )

    def note(
        self,
        kind: RowKind,
        subject: str,
        outcome: str,
        reason: str = "",
        **fields: Any,  # noqa: ANN401 - of the record
    ) -> None:
        """Append a row; a replay ignores what no method above writes."""
        self._note_steps()
        self._rows.append(self._record(kind, subject, outcome, reason=reason, **fields))

    def _append_bound(self, outcome: str, running: PlacedMember) -> None:
        inputs = {
            "request": rows.encode_request(running.request),
            "placement": rows.encode_placement(running.placement),
            **rows.encode_foreign(running.foreign),
        }
        self.note(
            RowKind.POD,
            str(running.request.gang),
            outcome,
            f"on {running.placement.node}",
            pod_uid=running.request.member,
            inputs=inputs,
        )

    def _record(self, kind: RowKind, subject: str, outcome: str, **fields: Any) -> DecisionRecord:  # noqa: ANN401 - of the record
        return DecisionRecord(
            at=self._clock.now(),
            service=SERVICE,
            kind=kind,
            subject=subject,
            outcome=outcome,
            **{"reason": "", "latency_seconds": 0.0, **fields},
        )


Journal = LogJournal | NoJournal
"""Receives every step of the engine."""
