"""Metrics that every service has. Names: prefix `cellgate_`, base units, labels of bounded size."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

# A decision is worth milliseconds, a database or an API server may cost seconds.
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class ServiceMetrics:
    """The registry of one service and what is measured of its HTTP side."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "cellgate_http_requests",
            "Requests answered, by route and status.",
            ["route", "status"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "cellgate_http_request_seconds",
            "Time from the first byte of a request to its answer.",
            ["route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.ready = Gauge(
            "cellgate_ready", "1 while the service is ready, else 0.", registry=self.registry
        )
