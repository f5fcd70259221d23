"""Metrics of the history of runs."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from extender.runs.run_book import RunBook


class RunMetrics:
    """Counts what is recorded, and what is not."""

    def __init__(self, registry: CollectorRegistry, book: RunBook) -> None:
        self.recorded = Counter(
            "cellgate_extender_runs_recorded",
            "Ends of runs that were sent to the history, by how they ended (succeeded, failed, "
            "preempted, evicted, deleted).",
            ["outcome"],
            registry=registry,
        )
        self.repeated = Counter(
            "cellgate_extender_runs_repeated",
            "Runs that were sent again, because the history did not have them.",
            registry=registry,
        )
        self.presumed = Counter(
            "cellgate_extender_runs_presumed",
            "Runs whose pods were gone and whose end no leader saw.",
            registry=registry,
        )
        unrecorded = Gauge(
            "cellgate_extender_runs_unrecorded",
            "Runs that have ended and are not known to be in the history.",
            registry=registry,
        )
        unrecorded.set_function(lambda: len(book.ended))
        dropped = Gauge(
            "cellgate_extender_runs_dropped",
            "Ended runs that were forgotten before they were known to be in the history.",
            registry=registry,
        )
        dropped.set_function(lambda: book.dropped)
