"""What is measured of the extender, beside what every service measures.

Labels are of bounded size: verbs, outcomes, reason codes, VCs of the cluster document, cell types.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.cells.model import Decision, Place
from extender.cluster.cluster import Cluster
from extender.inspection.census import NOBODY, Census
from extender.outcomes.waiting_list import WaitingList
from kube.api.feed import Feed

_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_OTHER_VC = "(unknown)"


class ExtenderMetrics:
    """Counted while it happens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"cellgate_extender_{name}", about, labels, registry=registry)

        self.verb_seconds = Histogram(
            "cellgate_extender_verb_seconds",
            "Time to answer kube-scheduler, by verb and outcome.",
            ["verb", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decisions = counter("decisions", "Plans made, by outcome.", "outcome")
        self.repeats = counter("repeats", "Refusals given again, since nothing had changed.")
        self.binds = counter("binds", "Bindings asked of the API server, by outcome.", "outcome")
        self.preemptions = counter(
            "preemptions", "Preemptions, by who ends victims, and for what right.", "by", "cause"
        )
        self.victims = counter("victims_ended", "Pods that we ended for the sake of others.")
        self.woken = counter("pods_woken", "Refused pods shown to kube-scheduler again.")
        self.expired = counter("leases_expired", "Gangs whose lease was not used in time.")
        self.drift = counter("drift", "Differences found and mended, by kind.", "kind")

    def count_decision(self, decision: Decision) -> None:
        """Count one plan."""
        outcome = "placed" if isinstance(decision, Place) else str(decision.reason.code)
        self.decisions.labels(outcome).inc()


class StateMetrics(Collector):
    """Read from the state when somebody asks."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        cluster: Cluster,
        census: Census,
        waiting: WaitingList,
        feeds: Mapping[str, Feed],
        count_problems: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._census = census
        self._waiting = waiting
        self._feeds = feeds
        self._count_problems = count_problems
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read the numbers."""
        yield self._waiting_gangs()
        yield from self._cells()
        yield _gauge("gangs", "Gangs that have leaf cells or reserve them.", self._census.gangs)
        yield _gauge("leases", "Gangs with places that are not bound yet.", self._census.leases)
        yield _gauge(
            "fragmentation_ratio",
            "Share of the idle leaf cells that are not in wholly idle nodes.",
            self._census.fragmentation,
        )
        yield _gauge("policy_problems", "What is wrong with documents.", self._count_problems())
        lag = _family("feed_silent_seconds", "Time since the API server was heard.", "feed")
        for name, feed in self._feeds.items():
            lag.add_metric([name], feed.silent_seconds)
        yield lag

    def _waiting_gangs(self) -> GaugeMetricFamily:
        gangs = {(waiting.gang, waiting.vc, waiting.code) for waiting in self._waiting}
        counts = Tally((self._vc(vc), code) for _, vc, code in gangs)
        family = _family("waiting_gangs", "Gangs that wait, by VC and reason.", "vc", "reason")
        for labels, count in sorted(counts.items()):
            family.add_metric(labels, count)
        return family

    def _vc(self, name: str) -> str:
        """A VC as a label: pods may call themselves of any."""
        known = self._cluster.topology.vcs if self._cluster.topology else {}
        return name if name in known or name == NOBODY else _OTHER_VC

    def _cells(self) -> Iterator[Metric]:
        leaves = _family("leaf_cells", "Leaf cells by VC and what they are.", "vc", "state")
        counts: Tally[tuple[str, str]] = Tally()
        for (vc, state), count in self._census.leaf_cells.items():
            counts[self._vc(vc), state] += count
        for key, count in sorted(counts.items()):
            leaves.add_metric(key, count)
        yield leaves
        cells = _family("cells", "Cells by VC, cell type and state.", "vc", "type", "state")
        for labels, count in sorted(self._census.cells.items()):
            cells.add_metric(labels, count)
        yield cells


def _family(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cellgate_extender_{name}", about, labels=labels)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cellgate_extender_{name}", about, value)
