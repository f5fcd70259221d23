"""Metrics that every service has.

Every metric has the prefix `cellgate_`, base units, and labels with a bounded set of values. The
help text says what is counted and what the labels mean: `docs/metrics.md` is generated from it.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

# A decision takes milliseconds; a database or an API server may take seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class ServiceMetrics:
    """The registry of one service, and the metrics of its HTTP server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "cellgate_http_requests",
            "HTTP requests answered, by route and status code.",
            ["route", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "cellgate_http_request_seconds",
            "Time to answer an HTTP request, by route.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.ready = Gauge(
            "cellgate_ready",
            "1 while the service is ready (`/readyz` answers 200), else 0.",
            registry=self.registry,
        )
