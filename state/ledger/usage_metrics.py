"""Metrics of the live cache of usage: how old the usage is that this process decides by.

They are read from the cache when Prometheus asks, so that they cost nothing while decisions are
made.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from state.ledger.usage_cache import UsageCache


class UsageMetrics(Collector):
    """The metrics of one cache."""

    def __init__(self, registry: CollectorRegistry, usage: UsageCache) -> None:
        self._usage = usage
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read the cache's numbers."""
        yield GaugeMetricFamily(
            "cellgate_usage_staleness_seconds",
            "Time since the cached usage was last known to be current; +Inf if it never was.",
            self._usage.staleness_seconds,
        )
        yield GaugeMetricFamily(
            "cellgate_usage_assumed_charges",
            "Charges that only this process counts, because Postgres did not answer.",
            len(self._usage.assumed),
        )
        yield CounterMetricFamily(
            "cellgate_usage_resyncs",
            "Times that all usage was read from Postgres: once for each connection.",
            self._usage.resyncs,
        )
