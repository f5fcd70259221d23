"""What is measured of the decision log."""

from prometheus_client import CollectorRegistry

from state.log.log import DecisionLog, LogSettings
from state.log.metrics import LogMetrics
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions


async def test_the_metrics_tell_how_far_behind_the_log_is() -> None:
    log = DecisionLog(MemoryDecisions(), LogSettings(capacity=2))
    registry = CollectorRegistry()
    LogMetrics(registry, log)
    for _ in range(3):
        log.append(a_decision())
    assert registry.get_sample_value("cellgate_log_pending_rows") == 2
    assert registry.get_sample_value("cellgate_log_unacknowledged_rows") == 2
    await log.flush()
    assert registry.get_sample_value("cellgate_log_pending_rows") == 0
    assert registry.get_sample_value("cellgate_log_written_rows_total") == 2
    assert registry.get_sample_value("cellgate_log_spooled_rows_total") == 0
    full = registry.get_sample_value("cellgate_log_dropped_rows_total", {"reason": "full"})
    assert full == 1
