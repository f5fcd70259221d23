"""Metrics of quotas: how much groups hold, and how much they may hold.

They are read from the usage in memory when Prometheus asks. Users have no metrics: there may be any
number of them; `/v1/limits` of the extender shows theirs.
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from policy.policy import Policy
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.usage import MICROS_PER_HOUR
from webhook.admission.memory_decider import LiveUsage

_MILLIS: Final = 1000


class QuotaMetrics(Collector):
    """The quotas of all groups."""

    def __init__(
        self, registry: CollectorRegistry, *, usage: LiveUsage, policy: Callable[[], Policy]
    ) -> None:
        self._usage = usage
        self._policy = policy
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read limits and usage."""
        most = _family(
            "cellgate_webhook_quota_limit",
            "How much a group may hold, by limit: leaf cells (of a type), gangs, leaf-cell-hours, "
            "CPU cores (cpu) or bytes (memory).",
        )
        used = _family(
            "cellgate_webhook_quota_used",
            "How much of such a limit a group uses, in the same unit; none until usage was read.",
        )
        for group in self._policy().quotas.groups:
            scope = Scope(None, group.name)
            for limit in group.allowance.limits(scope):
                labels = (group.name, _name(limit.measure), limit.leaf_type or "")
                most.add_metric(labels, _to_unit(limit.measure, limit.most))
                if self._usage.is_known:
                    used.add_metric(labels, self._used(limit))
        yield most
        yield used

    def _used(self, limit: Limit) -> float:
        used = self._usage.usage(limit.scope).used(limit.measure, limit.leaf_type)
        if limit.measure.is_hours:
            return used / MICROS_PER_HOUR
        return _to_unit(limit.measure, used)


def _name(measure: Measure) -> str:
    """Return the limit as in the Quotas document; a limit of one leaf type has a label for it."""
    counted = Measure.LEAF_CELLS if measure is Measure.LEAF_CELLS_OF_TYPE else measure
    return counted.field


def _family(name: str, about: str) -> GaugeMetricFamily:
    labels = ("group", "measure", "leaf_type")
    return GaugeMetricFamily(name, about, labels=labels)


def _to_unit(measure: Measure, amount: float) -> float:
    return amount / _MILLIS if measure is Measure.CPU_MILLIS else amount
