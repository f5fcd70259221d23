"""Pods that lie about where they run and what they hold: counted, never believed against others."""

from random import Random

import orjson
import pytest

from extender.cluster.journal import DecisionContext
from kube import marks
from policy.submission import NodeName, PodUid
from state.log.records import RowKind
from tests.support.cells.engine_calls import check, list_nodes
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod

NODES = [f"node-{index:02}" for index in range(4)]
CONTEXT = DecisionContext(kind=RowKind.PLACEMENT, now=0.0, applies_preemption=True)
SPECS = (
    "{virtualCluster: lab, priority: 5, leafCellNumber: 4}",
    "{virtualCluster: lab, priority: -1, leafCellNumber: 16}",
    "{virtualCluster: nobody, leafCellNumber: 2}",
    "{{{",
)


class Liars:
    """Ten pods that change their minds."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._nodes: dict[str, str] = {}
        self.shell = Shell(lease_seconds=10)
        self.shell.pods.replace([self._pod(f"p{index}") for index in range(10)])
        self.shell.recover()
        self.mending = self.shell.reconciler()
        self._now = 0.0

    def _pod(self, name: str) -> PodBuilder:
        choose = self._random.choice
        pod = a_pod(name).with_gpus(choose([1, 2, 8, 8, 16]))
        pod = pod.in_vc(choose(["lab", "lab", "other", "?"]))
        if choose([True, False]):
            pod = pod.in_gang(choose("abc"), size=choose([1, 2, 3]))
        if choose([True, False, False]):
            pod = pod.for_hived().with_hived_spec(choose(SPECS))
        if choose([True, False]):
            pod = pod.annotated(marks.PLACEMENT_ANNOTATION, self._placement())
        if choose([True, False]):
            self._nodes.setdefault(name, choose([*NODES, "gone"]))
        if choose([True, False, False, False]):
            pod = pod.gated()
        # A pod that is bound stays where it is, and that alone is no lie.
        return pod.bound_to(self._nodes[name]) if name in self._nodes else pod

    def _placement(self) -> str:
        leaves = [self._random.randrange(10) for _ in range(self._random.choice([1, 2, 8]))]
        told = {
            "node": self._random.choice([*NODES, "gone"]),
            "leafCells": self._random.choice([leaves, list(range(8)), list(range(5_000))]),
            "vcCell": self._random.choice(["lab/0", "evil/3"]),
            "vcCellType": self._random.choice(["node", "rack", "evil"]),
            "chain": self._random.choice(["rack", "evil"]),
        }
        return self._random.choice([orjson.dumps(told).decode(), "garbage", "[]", "{}"])

    def step(self) -> None:
        self._now += self._random.random() * 2
        name, word = f"p{self._random.randrange(10)}", self._random.random()
        if word < 0.5:
            self.shell.pods.upsert(self._pod(name))
        elif word < 0.6:
            self._nodes.pop(name, None)
            self.shell.pods.remove(a_pod(name))
        elif word < 0.7:
            self.shell.cluster.expire(now=self._now)
        elif word < 0.8:
            is_healthy = self._random.random() < 0.7
            self.shell.node(self._random.choice(NODES), is_healthy=is_healthy)
        else:
            self._ask(name)

    def _ask(self, name: str) -> None:
        pod = self.shell.pods.get(PodUid(f"uid-of-{name}"))
        if pod is not None and pod.node is None and not pod.is_gated:
            nodes = dict.fromkeys(map(NodeName, NODES))
            request = self.shell.to_request(pod)
            self.shell.cluster.decide(request, candidate_nodes=nodes, context=CONTEXT)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_pods_say_the_invariants_hold_and_nothing_drifts(seed: int) -> None:
    liars = Liars(seed)
    for _ in range(60):
        liars.step()
        check(liars.shell.cluster._engine)
        held = {node.name: list(leaves) for node, leaves in list_nodes(liars.shell.cluster._engine)}
        assert all(leaf in range(8) for leaves in held.values() for leaf in leaves)
    for _ in range(5):
        list(liars.mending.reconcile())
    found = [liars.shell.drift(kind) for kind in ("missing", "ghost", "unbound")]
    assert found == [0, 0, 0]
