"""Runs scenarios on the engine, in the roles of kube-scheduler, the kubelet and users.

Steps and checks are those of the shared conformance runner; here they call the engine directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from extender.cells.engine import Engine
from extender.cells.model import (
    Decision,
    FreeMode,
    GangView,
    MemberRequest,
    NodeCell,
    Place,
    Preempt,
    Reject,
)
from policy.placement import Placement
from policy.submission import GangKey, LeafType, NodeName, PodUid, VcName
from policy.topology import PhysicalCell, PinnedCellId, Topology
from tests.support.cells.builders import nodes_of
from tests.support.cells.engine_calls import check, observe_bound


@dataclass
class Pod:
    """A pod of a scenario."""

    name: str
    spec: Any
    namespace: str = "default"
    node: str | None = None
    """The node of a pod that is created bound."""

    @property
    def group(self) -> str:
        return str(
            (self.spec.get("affinityGroup") or {}).get("name") or f"{self.namespace}/{self.name}"
        )

    @property
    def priority(self) -> int:
        return int(self.spec.get("priority") or 0)

    def request(self) -> MemberRequest:
        spec = self.spec
        count = spec.get("leafCellNumber") or 1
        members = (spec.get("affinityGroup") or {}).get("members") or [
            {"podNumber": 1, "leafCellNumber": count}
        ]
        pinned = spec.get("pinnedCellId") or None
        return MemberRequest(
            member=PodUid(self.name),
            gang=GangKey(self.namespace, self.group),
            leaf_count=count,
            gang_leaf_counts=tuple(
                sorted(m["leafCellNumber"] for m in members for _ in range(m["podNumber"]))
            ),
            leaf_type=LeafType(spec["leafCellType"])
            if spec.get("leafCellType") and not pinned
            else None,
            vc=VcName(spec.get("virtualCluster") or ""),
            priority=self.priority,
            pinned=PinnedCellId(pinned) if pinned else None,
            is_lazy=bool(spec.get("lazyPreemptionEnable")),
            ignores_candidates=spec.get("ignoreK8sSuggestedNodes") is not False,
            free_mode=FreeMode.WHOLE,
        )


@dataclass
class Outcome:
    """The result of one attempt."""

    kind: str
    node: str = ""
    victims: list[str] = field(default_factory=list)
    text: str = ""


def topology_of(config: Mapping[str, Any]) -> Topology:
    """Read HiveD's configuration."""
    from tests.support.policy.cluster_texts import topology_of as read

    return read(orjson.dumps(config).decode())


class Player:
    """One scenario."""

    def __init__(
        self, config: Mapping[str, Any], configs: Mapping[str, Any], pods: dict[str, Pod]
    ) -> None:
        self.configs = configs
        self.pods = pods
        self.topology = topology_of(config)
        self.nodes: dict[str, bool] = dict.fromkeys(nodes_of(self.topology), True)
        self.where: dict[str, Placement] = {}
        """Bound pods."""
        self.evicted: list[str] = []
        self.engine = self._new_engine()
        self.now = 0.0

    def _new_engine(self) -> Engine:
        engine = Engine(lease_seconds=600, topology=self.topology)
        for node in self.nodes:
            self._observe(engine, node)
        return engine

    def _observe(self, engine: Engine, node: str) -> None:
        engine.observe_node(
            NodeCell(
                name=NodeName(node),
                leaf_type=None,
                leaf_count=_leaf_count(self.topology, node),
                is_healthy=self.nodes[node],
            )
        )

    # -- asking

    def ready(self) -> list[NodeName]:
        return [NodeName(node) for node, ready in self.nodes.items() if ready]

    def suggested(self, which: Any) -> list[NodeName]:
        if isinstance(which, list):
            return [NodeName(node) for node in which]
        but = which.removeprefix("ALL_EXCEPT_") if which.startswith("ALL_EXCEPT_") else None
        return [NodeName(node) for node in self.nodes if node != but]

    def decide(self, name: str, nodes: list[NodeName]) -> Decision:
        request = self.pods[name].request()
        decision = self.engine.plan(request, candidate_nodes=dict.fromkeys(nodes))
        assert self.engine.plan(request, candidate_nodes=dict.fromkeys(nodes)) == decision
        check(self.engine)
        return decision

    def filter(self, name: str, nodes: list[NodeName]) -> Outcome:
        decision = self.decide(name, nodes)
        if isinstance(decision, Place):
            self._apply(decision)
            return Outcome("bind", node=decision.placement.node)
        if isinstance(decision, Reject):
            return Outcome("user_error", text=decision.reason.text)
        if decision.reason.code == "gang-full":
            return Outcome("user_error", text=decision.reason.text)
        if not isinstance(decision, Preempt):
            self._apply(decision)
        return Outcome("wait", text=decision.reason.text)

    def preempt(self, name: str, nodes: list[NodeName]) -> Outcome:
        decision = self.decide(name, nodes)
        if isinstance(decision, Preempt):
            self._apply(decision)
            return Outcome("preempt", victims=self._on_one_node(decision))
        if isinstance(decision, Reject):
            return Outcome("user_error", text=decision.reason.text)
        if not isinstance(decision, Place):
            self._apply(decision)
            return Outcome("wait", text=decision.reason.text)
        return Outcome("wait")

    def _apply(self, decision: Decision) -> None:
        self.engine.apply(decision, now=self.now)
        check(self.engine)

    def _on_one_node(self, decision: Preempt) -> list[str]:
        victims = [
            name
            for name in self.where
            if GangKey(self.pods[name].namespace, self.pods[name].group) in decision.victims
        ]
        by_node: dict[str, list[str]] = {}
        for name in victims:
            by_node.setdefault(self.where[name].node, []).append(name)
        return by_node[min(by_node)] if by_node else []

    def cycle(self, name: str) -> Outcome:
        evicted = False
        for _ in range(30):
            outcome = self.filter(name, self.ready())
            if outcome.kind == "bind":
                self.bind(name)
            if outcome.kind != "wait":
                return outcome
            outcome = self.preempt(name, self.ready())
            if outcome.kind != "preempt" and not evicted:
                return outcome
            evicted = bool(outcome.victims)
            for victim in outcome.victims:
                self.evicted.append(victim)
                self.delete(victim)
        raise AssertionError(f"{name} is neither bound nor waiting")

    def bind(self, name: str) -> None:
        placement = self.engine.placement(PodUid(name))
        assert placement is not None
        for other, there in self.where.items():
            clash = set(there.leaf_cells) & set(placement.leaf_cells)
            assert other == name or there.node != placement.node or not clash
        self.where[name] = placement
        self._tell(self.engine, name)
        check(self.engine)

    def _tell(self, engine: Engine, name: str) -> None:
        placement = self.where[name]
        observe_bound(
            engine,
            self.pods[name].request(),
            node=placement.node,
            leaf_cells=placement.leaf_cells,
            placement=placement,
        )

    def delete(self, name: str) -> None:
        self.where.pop(name, None)
        self.engine.forget_member(PodUid(name))
        check(self.engine)

    # -- the world

    def set_node(self, node: str, *, ready: bool) -> None:
        self.nodes[node] = ready
        self._observe(self.engine, node)
        check(self.engine)

    def delete_node(self, node: str) -> None:
        del self.nodes[node]
        self.engine.forget_node(NodeName(node))
        check(self.engine)

    def use(self, config: Mapping[str, Any]) -> None:
        self.topology = topology_of(config)
        for node in nodes_of(self.topology):
            self.nodes.setdefault(node, True)

    def restart(self, config: Mapping[str, Any] | None) -> None:
        if config is not None:
            self.use(config)
        engine = Engine(lease_seconds=600, topology=self.topology)
        for name in self.where:
            self._tell(engine, name)
            check(engine)
        for node in self.nodes:
            self._observe(engine, node)
        self.engine = engine
        check(engine)

    def change(self, config: Mapping[str, Any]) -> None:
        self.use(config)
        self.engine.change_topology(self.topology)
        for node in self.nodes:
            self._observe(self.engine, node)
        check(self.engine)

    def gang(self, group: str) -> GangView | None:
        return next((g for g in self.engine.gangs() if g.gang.name == group), None)


def _leaf_count(topology: Topology, node: str) -> int:
    """Devices of a node, in all chains."""

    def count(cell: PhysicalCell) -> int:
        if cell.level == 1:
            return int(cell.node == node)
        return sum(map(count, cell.children))

    return sum(count(cell) for chain in topology.chains.values() for cell in chain.cells)
