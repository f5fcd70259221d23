"""Metrics of the decision log: how far it is behind, and what is missing in it.

They are read from the log when Prometheus asks, so that they cost nothing while decisions are made.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from state.log.log import DecisionLog


class LogMetrics(Collector):
    """The metrics of one log."""

    def __init__(self, registry: CollectorRegistry, log: DecisionLog) -> None:
        self._log = log
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read the log's numbers."""
        log = self._log
        yield GaugeMetricFamily(
            "cellgate_log_pending_rows", "Rows that are not in Postgres yet.", log.pending
        )
        yield GaugeMetricFamily(
            "cellgate_log_unacknowledged_rows",
            "Rows that are only in memory, and would be lost if the process were killed now.",
            log.unacknowledged,
        )
        yield CounterMetricFamily(
            "cellgate_log_written_rows", "Rows written to Postgres.", log.written
        )
        yield CounterMetricFamily(
            "cellgate_log_spooled_rows",
            "Rows that were written to the spool on disk before Postgres took them.",
            log.spooled,
        )
        dropped = CounterMetricFamily(
            "cellgate_log_dropped_rows",
            "Rows that the log lacks, by reason: full (no room while Postgres was unavailable), "
            "refused (by Postgres), deposed (another replica leads), killed (lost with the "
            "previous process) or unreadable (in the spool).",
            labels=["reason"],
        )
        for reason, count in log.dropped_by_reason.items():
            dropped.add_metric([reason], count)
        yield dropped
