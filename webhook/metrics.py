"""What is measured of the webhook, beside what every service measures."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from policy.errors import Problem
from policy.store import Policy


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

    def on_policy(self, _: Policy, problems: Sequence[Problem]) -> None:
        """Take note of what is wrong with the policy documents."""
        self.policy_problems.set(len(problems))
