"""What is kept of a decision: a row of the log, a number in a metric, words for an Event."""

from service.clock import Clock
from state.log import DecisionLog
from webhook.metrics import WebhookMetrics
from webhook.records import build_record
from webhook.told import ToldPods
from webhook.verdict import Request, Verdict


class DecisionNotes:
    """Takes note of decisions; a dry run leaves a number only."""

    def __init__(
        self, *, log: DecisionLog, metrics: WebhookMetrics, told: ToldPods, clock: Clock
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._told = told
        self._clock = clock

    def note(self, verdict: Verdict, request: Request, *, is_dry_run: bool, seconds: float) -> None:
        """Keep a decision."""
        outcome = "lowered" if verdict.is_lowered else verdict.outcome.value
        self._metrics.decisions.labels(outcome).inc()
        if verdict.is_degraded:
            self._metrics.degraded.inc()
        if is_dry_run:
            return
        self._told.note(verdict)
        record = build_record(verdict, request, at=self._clock.now(), seconds=seconds)
        self._log.append(record)

    def note_invalid(self) -> None:
        """Count a pod that makes no sense."""
        self._metrics.decisions.labels("invalid").inc()
