"""Metrics of the extender, beside those that every service has.

Label values are bounded: verbs, outcomes, reason codes, VCs of the Cluster document, cell types.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from extender.cells.model import Decision, Place
from extender.cluster.cluster import Cluster
from extender.inspection.census import NO_VC, Census
from extender.outcomes.waiting_list import WaitingEntry
from kube.api.feed import Feed

_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_HOLD_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 150.0)
_OTHER_VC = "(unknown)"


class ExtenderMetrics:
    """Metrics that are counted when something happens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"cellgate_extender_{name}", about, labels, registry=registry)

        self._add_corrections(counter)
        self._add_reservations(counter)
        self.verb_seconds = Histogram(
            "cellgate_extender_verb_seconds",
            "Time to answer kube-scheduler, by verb and outcome (answered, refused, not-ready).",
            ["verb", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.decisions = counter(
            "decisions", "Plans made, by outcome: placed, or the code of the reason.", "outcome"
        )
        self.repeats = counter(
            "repeats", "Refusals repeated without planning, because nothing had changed."
        )
        self.binds = counter("binds", "Bindings, by outcome (bound, failed, given-up).", "outcome")
        self.hold_seconds = Histogram(
            "cellgate_extender_bind_hold_seconds",
            "Time that a binding was held until its whole gang could be bound.",
            buckets=_HOLD_BUCKETS,
            registry=registry,
        )
        self.given_up = counter(
            "bindings_given_up",
            "Gangs of which no member was bound because not all could be, by cause: refused (by "
            "kube-scheduler), silent (members did not arrive in time), overdue "
            "(there are more than arrive within --hold-seconds), place-lost, stopped.",
            "cause",
        )
        self.preemptions = counter(
            "preemptions",
            "Preemptions, by the program that ends the victims and by cause: borrowed (a VC takes "
            "back cells that it lent), priority, or moved (another gang starts earlier).",
            "by",
            "cause",
        )
        self.raised = counter(
            "gangs_raised", "Gangs beyond quota that were raised because their quotas have room."
        )
        self.gate_messages = counter(
            "gate_messages",
            "Conditions of gated pods that say why the pod waits, by outcome (written, failed).",
            "outcome",
        )
        self.victims = counter("victims_ended", "Pods that the extender ended as victims.")
        self.suspensions = counter(
            "workload_suspensions",
            "Workloads of victims, by outcome: suspended, resumed, refused (another program owns "
            "the field), forbidden (a missing right) or failed.",
            "outcome",
        )

    def _add_reservations(self, counter: Callable[..., Counter]) -> None:
        """Add what happens to reservations."""
        self.reservations_made = counter(
            "reservations_made", "Reservations of leaf cells made for gangs that wait for long."
        )
        self.reservation_slips = counter(
            "reservation_slips",
            "Promised starts that were put off, by cause: overrun (a gang runs longer than "
            "expected) or cells-lost.",
            "cause",
        )
        self.reservations_ended = counter(
            "reservations_ended",
            "Reservations that ended, by how: started, gone, not-waiting, unused, outranked, "
            "no-room, changed, too-many, replaced, wrong-clock, over or withdrawn.",
            "end",
        )
        self.backfilled = counter(
            "backfilled_gangs", "Gangs that used reserved leaf cells before they were needed."
        )

    def _add_corrections(self, counter: Callable[..., Counter]) -> None:
        """Add what should be rare: each shows that something did not go as planned."""
        self.woken = counter(
            "pods_woken", "Refused pods that were touched so that kube-scheduler retries them."
        )
        self.expired = counter(
            "leases_expired", "Leases that expired before all members were bound."
        )
        self.refused_nodes = counter(
            "refused_nodes",
            "Times that kube-scheduler refused the node that was planned for a pod, by what the "
            "node lacks: cpu, memory, ephemeral-storage, other-resource, pods, ports, taints, "
            "node-affinity, pod-affinity, volumes or other.",
            "lacks",
        )
        self.drift = counter(
            "drift",
            "Differences between pods and the engine, or pods and the ledger, that were corrected, "
            "by kind.",
            "kind",
        )

    def count_decision(self, decision: Decision) -> None:
        """Count one plan."""
        outcome = "placed" if isinstance(decision, Place) else str(decision.reason.code)
        self.decisions.labels(outcome).inc()


class StateMetrics(Collector):
    """Metrics that are read from the state when Prometheus asks."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        cluster: Cluster,
        census: Census,
        waiting: Iterable[WaitingEntry],
        feeds: Mapping[str, Feed],
        count_problems: Callable[[], int],
        count_held: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._census = census
        self._waiting = waiting
        self._feeds = feeds
        self._count_problems = count_problems
        self._count_held = count_held
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """Read the numbers."""
        yield self._waiting_gangs()
        yield from self._cells()
        yield _gauge("gangs", "Gangs that hold or reserve leaf cells.", self._census.gangs)
        yield _gauge("leases", "Gangs with members that are not bound yet.", self._census.leases)
        yield _gauge(
            "held_gangs",
            "Gangs whose bindings are held until all members can be bound.",
            self._count_held(),
        )
        yield _gauge(
            "quarantined_nodes",
            "Nodes that no gang may use, by the annotation cellgate.io/quarantine.",
            sum(node.is_quarantined for node in self._cluster.nodes.values()),
        )
        yield _gauge(
            "fragmentation_ratio",
            "Share of the free leaf cells that are on partly used nodes.",
            self._census.fragmentation,
        )
        yield _gauge(
            "policy_problems",
            "Problems in policy documents, and promises to VCs that the nodes cannot keep.",
            self._count_problems(),
        )
        silence = _family(
            "feed_silent_seconds", "Time since the API server last sent anything, by feed.", "feed"
        )
        for name, feed in self._feeds.items():
            silence.add_metric([name], feed.silent_seconds)
        yield silence

    def _waiting_gangs(self) -> GaugeMetricFamily:
        gangs = {(one.gang, one.pod.vc, one.reason.code) for one in self._waiting}
        counts = Tally((self._vc(vc), code) for _, vc, code in gangs)
        family = _family("waiting_gangs", "Waiting gangs, by VC and reason.", "vc", "reason")
        for labels, count in sorted(counts.items()):
            family.add_metric(labels, count)
        return family

    def _vc(self, name: str) -> str:
        """Return a VC as a label value: a pod may name a VC that does not exist."""
        known = self._cluster.topology.vcs if self._cluster.topology else {}
        return name if name in known or name == NO_VC else _OTHER_VC

    def _cells(self) -> Iterator[Metric]:
        leaves = _family(
            "leaf_cells",
            "Leaf cells, by VC and state: free, used, held (leased, or reserved), bad, or foreign "
            "(used by pods that Cellgate did not place).",
            "vc",
            "state",
        )
        counts: Tally[tuple[str, str]] = Tally()
        for (vc, state), count in self._census.leaf_cells.items():
            counts[self._vc(vc), state] += count
        for key, count in sorted(counts.items()):
            leaves.add_metric(key, count)
        yield leaves
        cells = _family(
            "cells",
            "Cells promised to VCs, by VC, cell type and state (free, used).",
            "vc",
            "type",
            "state",
        )
        for labels, count in sorted(self._census.cells.items()):
            cells.add_metric(labels, count)
        yield cells
        yield from self._promises()

    def _promises(self) -> Iterator[Metric]:
        labels = "vc", "leaf_type", "level", "domain"
        promised = _family(
            "promised_cells", "Cells that the Cluster document promises to VCs.", *labels
        )
        backed = _family(
            "backed_cells",
            "Those of the promised cells for which there are nodes. Fewer than promised: see "
            "PromisesCut in failures.md.",
            *labels,
        )
        for vc in self._cluster.topology.vcs if self._cluster.topology else ():
            for one in self._cluster.backing(vc):
                promised.add_metric([vc, *one.kind], one.promised)
                backed.add_metric([vc, *one.kind], one.backed)
        yield from (promised, backed)


def _family(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cellgate_extender_{name}", about, labels=labels)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"cellgate_extender_{name}", about, value)
