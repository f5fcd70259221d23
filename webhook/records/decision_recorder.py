"""Records a decision: a row of the decision log, a metric, and the text of a later Event.

A row that cannot be built is a bug, which is told in the log of the process: the gang is charged
already, so its pod is answered.
"""

import logging

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

logger = logging.getLogger(__name__)


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
        try:
            row = self._build_row(decision, request, seconds=seconds)
        except Exception:
            gang = str(request.submission.gang)
            logger.exception("decision not logged", extra={"gang": gang})
        else:
            self._log.append(row)

    def _build_row(
        self, decision: GangDecision, request: ChargeRequest, *, seconds: float
    ) -> DecisionRecord:
        """Build the row: who asked for what, what was decided and why, and by which policy."""
        details, inputs = encode_details(request, decision), encode_inputs(request, decision)
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
            details=details,
            inputs={"policy": self._policy_hash, **inputs},
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
