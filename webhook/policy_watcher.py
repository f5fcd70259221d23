"""Documents that got in although they are bad: they are not in force, and that is told.

As a number in a metric, and as an Event on the ConfigMap. The log has it from
`kube.follow.policies`.
"""

import re
from collections.abc import Sequence
from typing import Final

from kube.api.events import Event, EventWriter
from policy.errors import Problem
from policy.policy import Policy
from webhook.metrics import WebhookMetrics

_SOURCE: Final = re.compile(r"ConfigMap (\S+?)(?::|$)")


class PolicyWatcher:
    """Hears of every change of the policy."""

    def __init__(self, metrics: WebhookMetrics, events: EventWriter, *, namespace: str) -> None:
        self._metrics = metrics
        self._events = events
        self._namespace = namespace

    def on_change(self, _: Policy, problems: Sequence[Problem]) -> None:
        """Take note of what is wrong with the documents."""
        self._metrics.policy_problems.set(len(problems))
        for problem in problems:
            source = _SOURCE.match(problem.path)
            if source is not None:
                message = f"not in force, the last good version is: {problem}"
                self._events.write(self._event(source[1], message))

    def _event(self, name: str, message: str) -> Event:
        metadata = {"name": name, "namespace": self._namespace}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        return Event.about(obj, reason="PolicyProblem", message=message)
