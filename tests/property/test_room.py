"""The room on nodes, kept up to date by events, equals a count from the beginning."""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes, Need
from kube.read.node_choice import NodeTraits, NodeWish
from policy.pod_resources import HostPort, LabelRule, NodePod, PodResources, PodSelector
from policy.submission import NodeName, PodUid

NODES = st.sampled_from([NodeName(f"n{index}") for index in range(3)])
UIDS = st.sampled_from([PodUid(f"p{index}") for index in range(6)])
SELECTORS = st.sampled_from([PodSelector(None, (LabelRule("app", "In", (app,)),)) for app in "ab"])
PODS = st.builds(
    lambda cpu, gpu_nic, ports, app, keeps_off: NodePod(
        resources=PodResources(
            amounts=tuple((n, a) for n, a in (("cpu", cpu), ("rdma/hca", gpu_nic)) if a),
            ports=ports,
            keeps_off=keeps_off,
        ),
        labels=(("app", app),),
    ),
    st.integers(0, 4),
    st.integers(0, 1),
    st.lists(st.sampled_from([HostPort(80), HostPort(81)]), max_size=1).map(tuple),
    st.sampled_from("abc"),
    st.lists(SELECTORS, max_size=1).map(tuple),
)


@dataclass
class _Known:
    pod: NodePod | None = None
    bound: NodeName | None = None
    seat: tuple[NodeName, bool] | None = None

    @property
    def place(self) -> tuple[NodeName, bool] | None:
        if self.pod is None:
            return None
        if self.bound is None or (self.seat is not None and self.seat[0] == self.bound):
            return self.seat
        return self.bound, False


@dataclass
class _Naive:
    """All that was reported, and nothing that follows from it."""

    nodes: dict[NodeName, tuple[str, dict[str, int]]] = field(default_factory=dict)
    pods: dict[PodUid, _Known] = field(default_factory=dict)

    def fits(self, need: Need, name: NodeName, *, is_freed: bool = False) -> bool:
        zone, capacity = self.nodes[name]
        if dict(need.wish.selector).get("zone", zone) != zone:  # type: ignore[attr-defined]
            return False
        places = [(known.pod, known.place) for known in self.pods.values()]
        here = [
            pod
            for pod, place in places
            if pod is not None
            and place is not None
            and place[0] == name
            and not (is_freed and place[1])
        ]
        wanted = need.resources
        for resource, amount in (*wanted.amounts, ("pods", 1)):
            used = sum(dict(pod.resources.amounts).get(resource, 0) for pod in here)
            used = len(here) if resource == "pods" else used
            if amount > capacity.get(resource, 0) - used:
                return False
        if any(one.selects(pod) for one in wanted.keeps_off for pod in here):
            return False
        taken = [port for pod in here for port in pod.resources.ports]
        return not any(port.collides(other) for port in wanted.ports for other in taken)


class RoomHistory(RuleBasedStateMachine):
    """Nodes, pods and places come, change and go, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.room = ClusterRoom()
        self.nodes = FittingNodes(self.room)
        self.naive = _Naive()
        self.needs: dict[Need, set[NodeName]] = {}

    @rule(name=NODES, zone=st.sampled_from("xy"), cpu=st.integers(0, 8), pods=st.integers(0, 4))
    def put_node(self, name: NodeName, zone: str, cpu: int, pods: int) -> None:
        capacity = {"cpu": cpu, "pods": pods, "rdma/hca": 1}
        self.nodes.upsert(name, NodeTraits(name=name, labels={"zone": zone}), capacity)
        self.naive.nodes[name] = zone, capacity

    @rule(name=NODES)
    def remove_node(self, name: NodeName) -> None:
        self.nodes.remove(name)
        self.naive.nodes.pop(name, None)

    @rule(uid=UIDS, pod=PODS, node=st.none() | NODES)
    def see(self, uid: PodUid, pod: NodePod, node: NodeName | None) -> None:
        self.room.see(uid, pod, node=node)
        known = self.naive.pods.setdefault(uid, _Known())
        known.pod, known.bound = pod, node

    @rule(uid=UIDS)
    def lose(self, uid: PodUid) -> None:
        self.room.lose(uid)
        known = self.naive.pods.setdefault(uid, _Known())
        known.pod = known.bound = None

    @rule(uid=UIDS, node=NODES, is_endable=st.booleans())
    def seat(self, uid: PodUid, node: NodeName, *, is_endable: bool) -> None:
        self.room.seat(uid, node, is_endable=is_endable)
        self.naive.pods.setdefault(uid, _Known()).seat = node, is_endable

    @rule(uid=UIDS)
    def unseat(self, uid: PodUid) -> None:
        self.room.unseat(uid)
        self.naive.pods.setdefault(uid, _Known()).seat = None

    @rule(pod=PODS, zone=st.sampled_from(["", "x"]))
    def ask(self, pod: NodePod, zone: str) -> None:
        selector = (("zone", zone),) if zone else ()
        need = Need(NodeWish(selector=selector), pod.resources)
        self.needs[need] = set(self.nodes.fitting([need]))
        while len(self.needs) > 4:
            del self.needs[next(iter(self.needs))]

    @invariant()
    def every_need_is_as_it_would_be_counted_anew(self) -> None:
        grown = self.nodes.take_grown()
        for need, before in self.needs.items():
            fitting = {name for name in self.naive.nodes if self.naive.fits(need, name)}
            freed = {
                name for name in self.naive.nodes if self.naive.fits(need, name, is_freed=True)
            }
            assert set(self.nodes.fitting([need])) == fitting
            assert set(self.nodes.freeable([need])) == fitting | freed
            assert need in grown or fitting <= before, "a gang that may fit now must be retried"
            self.needs[need] = fitting


TestRoomHistory = RoomHistory.TestCase
