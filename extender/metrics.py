"""What is measured of the extender, beside what every service measures."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from extender.cells.engine import Engine


class ExtenderMetrics:
    """Decisions, binds and cells."""

    def __init__(self, registry: CollectorRegistry, engine: Engine) -> None:
        self.decisions = Counter(
            "cellgate_extender_decisions",
            "Answers to filter, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self.binds = Counter(
            "cellgate_extender_binds",
            "Bindings asked of the API server, by outcome.",
            ["outcome"],
            registry=registry,
        )
        gangs = Gauge("cellgate_extender_gangs", "Gangs that have leaf cells.", registry=registry)
        gangs.set_function(lambda: len(engine.gangs()))
