"""What is measured of state: how far the decision log is behind, and what it lost."""

from prometheus_client import CollectorRegistry, Gauge

from state.log import DecisionLog


def expose_log(log: DecisionLog, registry: CollectorRegistry) -> None:
    """Show a log's counts wherever the registry is served."""
    for name, about, count in (
        ("pending", "Decisions that wait to be written.", lambda: log.pending),
        ("written", "Decisions written since the process began.", lambda: log.written),
        ("dropped", "Decisions lost since the process began.", lambda: log.dropped),
    ):
        gauge = Gauge(f"cellgate_decision_log_{name}", about, registry=registry)
        gauge.set_function(count)
