"""What is kept of a decision: a row of the log, a number in a metric, words for an Event."""

from policy.policy import Policy
from service.clock import Clock
from state.log.log import DecisionLog
from state.log.records import LoggedDocument
from webhook.admission.verdict import Request, Verdict
from webhook.metrics import WebhookMetrics
from webhook.reviews.log_records import build_record
from webhook.reviews.pending_events import ToldPods


class DecisionNotes:
    """Takes note of decisions; a dry run leaves a number only."""

    def __init__(
        self, *, log: DecisionLog, metrics: WebhookMetrics, told: ToldPods, clock: Clock
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._told = told
        self._clock = clock
        self._policy_version: str | None = None
        self._policy_hash = ""

    def note(self, verdict: Verdict, request: Request, *, is_dry_run: bool, seconds: float) -> None:
        """Keep a decision."""
        outcome = "lowered" if verdict.is_lowered else verdict.outcome.value
        self._metrics.decisions.labels(outcome).inc()
        if verdict.is_degraded:
            self._metrics.degraded.inc()
        if is_dry_run:
            return
        self._told.note(verdict)
        # Before anybody is told: a process that is killed then has it in its mirror.
        documents = self._new_documents(request.policy)
        record = build_record(
            verdict,
            request,
            at=self._clock.now(),
            seconds=seconds,
            policy_hash=self._policy_hash,
            documents=documents,
        )
        self._log.append(record)

    def _new_documents(self, policy: Policy) -> tuple[LoggedDocument, ...]:
        """Return the policy if it decides for the first time here; the log keeps it once."""
        if policy.version == self._policy_version:
            return ()
        document = LoggedDocument(kind="policy", content=policy.content)
        self._policy_version, self._policy_hash = policy.version, document.hash
        return (document,)

    def note_invalid(self) -> None:
        """Count a pod that makes no sense."""
        self._metrics.decisions.labels("invalid").inc()
