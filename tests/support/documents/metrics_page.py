"""Writes docs/metrics.md from the metrics that the services register (`make reference`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from extender.cluster.cluster import Cluster
from extender.cluster.journal import NoJournal
from extender.forecasts.start_forecasts import show_coverage
from extender.history.run_metrics import RunMetrics
from extender.inspection.census import Census
from extender.metrics import ExtenderMetrics, StateMetrics
from extender.outcomes.waiting_list import WaitingList
from extender.queue.forecast.starts import StartCalibration
from extender.runs.run_book import RunBook
from service.metrics import ServiceMetrics
from state.ledger.usage_metrics import UsageMetrics
from state.log.log import DecisionLog
from state.log.metrics import LogMetrics
from tests.support.twins.log import MemoryDecisions
from tests.support.webhook.admission_world import a_policy
from webhook.metrics import WebhookMetrics
from webhook.quota_metrics import QuotaMetrics

_HEAD: Final = """\
# Metrics

Every metric that the services export at `/metrics`, generated from the code (`make reference`).
[install.md](install.md#who-may-call-the-extender) says which callers may read them. Each service
also exports the `process_…` metrics of the Prometheus client: memory, CPU time, open files. A
histogram `x` is exported as `x_bucket`, `x_sum` and `x_count`. Counters and histograms also have a
gauge `x_created`, the time at which they began.
"""
_GROUPS: Final = (
    ("Both services", ("webhook", "extender")),
    ("Webhook", ("webhook",)),
    ("Extender", ("extender",)),
)


@dataclass(frozen=True, order=True)
class MetricInfo:
    """What the page says of a metric."""

    name: str
    """As it is exported: a counter with its suffix."""
    kind: str
    labels: tuple[str, ...]
    help: str


def metrics_of(service: str) -> list[MetricInfo]:
    """List the metrics of a service, by name."""
    measured = ServiceMetrics()
    if service == "webhook":
        WebhookMetrics(measured.registry)
        unread: Any = SimpleNamespace(is_known=False)
        QuotaMetrics(measured.registry, usage=unread, policy=a_policy)
    else:
        _register_extender(measured.registry)
    LogMetrics(measured.registry, DecisionLog(MemoryDecisions()))
    usage: Any = SimpleNamespace(staleness_seconds=0.0, assumed=(), resyncs=0)
    UsageMetrics(measured.registry, usage)
    collectors = list(measured.registry._collector_to_names)  # there is no other way to list them
    found = (info for collector in collectors for info in _describe(collector))
    return sorted(info for info in found if info.name.startswith("cellgate_"))


def _register_extender(registry: CollectorRegistry) -> None:
    ExtenderMetrics(registry)
    RunMetrics(registry, RunBook())
    show_coverage(registry, StartCalibration())
    cluster = Cluster(lease_seconds=1.0, journal=NoJournal())
    StateMetrics(
        registry,
        cluster=cluster,
        census=Census(cluster),
        waiting=WaitingList(),
        feeds={},
        count_problems=lambda: 0,
        count_held=lambda: 0,
    )


def _describe(collector: Collector) -> Iterator[MetricInfo]:
    for family in collector.collect():
        # A family without samples names its labels nowhere else.
        labels = getattr(family, "_labelnames", getattr(collector, "_labelnames", ()))
        name = f"{family.name}_total" if family.type == "counter" else family.name
        yield MetricInfo(name, family.type, tuple(labels), family.documentation)


def format_page() -> str:
    """Write the page."""
    exported = {service: metrics_of(service) for service in ("webhook", "extender")}
    parts = [_HEAD]
    for heading, services in _GROUPS:
        names = sorted({info for found in exported.values() for info in found})
        chosen = [
            info
            for info in names
            if tuple(service for service, found in exported.items() if info in found) == services
        ]
        parts.append(f"## {heading}\n")
        parts.append("| Metric | Type | Labels | Meaning |\n|---|---|---|---|")
        parts.append("\n".join(map(_row, chosen)) + "\n")
    return "\n".join(parts)


def _row(info: MetricInfo) -> str:
    labels = ", ".join(f"`{label}`" for label in info.labels)
    return f"| `{info.name}` | {info.kind} | {labels} | {info.help} |"


if __name__ == "__main__":
    print(format_page(), end="")
