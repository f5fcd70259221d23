"""Metrics of the webhook, beside those that every service has."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class WebhookMetrics:
    """Counts of decisions, and the state of the policy."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = Counter(
            "cellgate_webhook_decisions",
            "Decisions about pods, by outcome: admitted, lowered, queued, refused or invalid.",
            ["outcome"],
            registry=registry,
        )
        self.degraded = Counter(
            "cellgate_webhook_degraded_decisions",
            "Decisions by the last known usage, because the quota database did not answer in time.",
            registry=registry,
        )
        self.policy_problems = Gauge(
            "cellgate_policy_problems",
            "Problems in policy documents; a document that has any is not in force.",
            registry=registry,
        )
