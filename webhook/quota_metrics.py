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

_NAMES: Final = {
    Measure.LEAF_CELLS: "leafCells",
    Measure.LEAF_CELLS_HIGH: "leafCellsHigh",
    Measure.LEAF_CELLS_LOW: "leafCellsLow",
    Measure.LEAF_CELLS_OF_TYPE: "leafCells",
    Measure.GANGS: "gangs",
    Measure.HOURS_DAY: "leafCellHours.day",
    Measure.HOURS_WEEK: "leafCellHours.week",
    Measure.HOURS_MONTH: "leafCellHours.month",
    Measure.HOURS_TOTAL: "leafCellHours.total",
    Measure.CPU_MILLIS: "cpu",
    Measure.MEMORY_BYTES: "memory",
}
"""The names of limits, as in the Quotas document."""
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
                labels = (group.name, _NAMES[limit.measure], limit.leaf_type or "")
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


def _family(name: str, about: str) -> GaugeMetricFamily:
    labels = ("group", "measure", "leaf_type")
    return GaugeMetricFamily(name, about, labels=labels)


def _to_unit(measure: Measure, amount: float) -> float:
    return amount / _MILLIS if measure is Measure.CPU_MILLIS else amount
