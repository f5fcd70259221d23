"""What is measured of the decision log: how far it is behind, and what is missing in it.

Read from the log when somebody asks, so that nothing is spent on it while decisions are made.
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
            "cellgate_log_pending_rows", "Rows that Postgres has not taken yet.", log.pending
        )
        yield GaugeMetricFamily(
            "cellgate_log_unacknowledged_rows",
            "Rows in memory only: what a kill would lose now.",
            log.unacknowledged,
        )
        yield CounterMetricFamily(
            "cellgate_log_written_rows", "Rows that Postgres has taken.", log.written
        )
        yield CounterMetricFamily(
            "cellgate_log_spooled_rows", "Rows that went through the spool.", log.spooled
        )
        dropped = CounterMetricFamily(
            "cellgate_log_dropped_rows", "Rows that are missing in the log.", labels=["reason"]
        )
        for reason, count in log.dropped_by_reason.items():
            dropped.add_metric([reason], count)
        yield dropped
