"""Records a decision: a row of the decision log, a metric, and the text of a later Event."""

from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision
from policy.admission.logged import encode_details, encode_inputs, explain
from policy.policy import Policy
from policy.rules.decision import Outcome
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import DecisionRecord, LoggedDocument, RowKind
from webhook.metrics import WebhookMetrics
from webhook.records.pending_events import PendingEvents


class DecisionRecorder:
    """Records decisions; of a dry run only the metric."""

    def __init__(
        self, *, log: DecisionLog, metrics: WebhookMetrics, events: PendingEvents, clock: Clock
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._events = events
        self._clock = clock
        self._policy_version: str | None = None
        self._policy_hash = ""

    def record(
        self,
        decision: GangDecision,
        request: ChargeRequest,
        *,
        is_dry_run: bool,
        seconds: float,
    ) -> None:
        """Record a decision that took `seconds`."""
        outcome = "lowered" if decision.is_lowered else decision.outcome.value
        self._metrics.decisions.labels(outcome).inc()
        if decision.is_degraded:
            self._metrics.degraded.inc()
        if is_dry_run:
            return
        self._events.note(decision)
        if not decision.is_new and decision.outcome is not Outcome.REFUSED:
            return  # it follows the decision about the first member, which is recorded
        # Before the response is sent: if the process is killed then, the log's spool has the row.
        self._log.append(self._build_row(decision, request, seconds=seconds))

    def _build_row(
        self, decision: GangDecision, request: ChargeRequest, *, seconds: float
    ) -> DecisionRecord:
        """Build the row: who asked for what, what was decided and why, and by which policy."""
        documents = self._new_documents(request.policy)
        return DecisionRecord(
            at=self._clock.now(),
            service="webhook",
            kind=RowKind.ADMISSION,
            subject=str(request.submission.gang),
            outcome=decision.outcome,
            reason=explain(decision),
            policy_version=request.policy.version,
            latency_seconds=seconds,
            details=encode_details(request, decision),
            inputs={"policy": self._policy_hash, **encode_inputs(request, decision)},
            documents=documents,
        )

    def _new_documents(self, policy: Policy) -> tuple[LoggedDocument, ...]:
        """Return the policy at its first decision in this process; the log stores it once."""
        if policy.version == self._policy_version:
            return ()
        document = LoggedDocument(kind="policy", content=policy.content)
        self._policy_version, self._policy_hash = policy.version, document.hash
        return (document,)

    def note_invalid(self) -> None:
        """Count an invalid pod."""
        self._metrics.decisions.labels("invalid").inc()
