"""What is measured of the webhook, beside what every service measures."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class WebhookMetrics:
    """Decisions, and the state of the policy."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = Counter(
            "cellgate_webhook_decisions",
            "Pods decided about, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self.degraded = Counter(
            "cellgate_webhook_degraded_decisions",
            "Pods decided about by the usage known last, because the ledger did not answer.",
            registry=registry,
        )
        self.policy_problems = Gauge(
            "cellgate_policy_problems",
            "Problems of policy documents that are therefore not in force.",
            registry=registry,
        )
