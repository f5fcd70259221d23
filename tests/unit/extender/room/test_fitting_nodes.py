"""Which nodes fit what members need, while nodes and pods change."""

import pytest

from extender.room.cluster_room import ClusterRoom
from extender.room.fitting_nodes import FittingNodes, Need
from kube.read.node_choice import NodeTraits, NodeWish
from policy.pod_resources import (
    HostPort,
    LabelRule,
    NodePod,
    PodResources,
    PodSelector,
    Shortage,
)
from policy.submission import NodeName, PodUid

NODES = tuple(NodeName(f"n{index}") for index in range(3))


class World:
    """Three nodes with 8 CPUs and room for three pods."""

    def __init__(self, **labels: str) -> None:
        self.room = ClusterRoom()
        self.nodes = FittingNodes(self.room)
        for name in NODES:
            self.put(name, cpu=8000, pods=3)

    def put(self, name: NodeName, labels: dict[str, str] | None = None, **capacity: int) -> bool:
        traits = NodeTraits(name=name, labels=labels or {})
        return self.nodes.upsert(name, traits, capacity)

    def run(self, name: str, pod: NodePod, node: NodeName | None) -> PodUid:
        self.room.see(PodUid(name), pod, node=node)
        return PodUid(name)

    def fitting(self, need: Need) -> list[str]:
        return sorted(self.nodes.fitting([need]))


def a_pod(cpu: int = 0, *, labels: dict[str, str] | None = None, **fields: object) -> NodePod:
    amounts = (("cpu", cpu),) if cpu else ()
    resources = PodResources(amounts=amounts, **fields)  # type: ignore[arg-type]
    return NodePod(
        resources=resources, namespace="lab", labels=tuple(sorted((labels or {}).items()))
    )


def a_need(cpu: int = 0, **fields: object) -> Need:
    selector = tuple(sorted(dict(fields.pop("selector", ())).items()))  # type: ignore[call-overload]
    return Need(NodeWish(selector=selector), a_pod(cpu, **fields).resources)  # type: ignore[arg-type]


def test_a_node_fits_until_pods_of_any_kind_use_it_up() -> None:
    world, need = World(), a_need(5000)
    assert world.fitting(need) == ["n0", "n1", "n2"]
    uid = world.run("web", a_pod(4000), NODES[1])
    assert world.fitting(need) == ["n0", "n2"]
    world.room.lose(uid)
    assert world.fitting(need) == ["n0", "n1", "n2"]


def test_a_pod_that_is_not_bound_counts_where_it_has_a_place() -> None:
    world, need = World(), a_need(5000)
    uid = world.run("member", a_pod(4000), None)
    assert world.fitting(need) == ["n0", "n1", "n2"]
    world.room.seat(uid, NODES[0], is_endable=True)
    assert world.fitting(need) == ["n1", "n2"]
    world.run("member", a_pod(4000), NODES[0])
    world.room.unseat(uid)
    assert world.fitting(need) == ["n1", "n2"], "it runs there"
    world.run("member", a_pod(4000), NODES[2])
    assert world.fitting(need) == ["n0", "n1"], "it runs elsewhere than its place"


def test_a_place_may_be_known_before_its_pod() -> None:
    world, need = World(), a_need(5000)
    world.room.seat(PodUid("member"), NODES[0], is_endable=True)
    assert world.fitting(need) == ["n0", "n1", "n2"]
    world.run("member", a_pod(4000), None)
    assert world.fitting(need) == ["n1", "n2"]


def test_only_what_is_requested_can_be_lacking() -> None:
    """kube-scheduler puts a pod without requests on a node that is used up."""
    world = World()
    world.run("web", a_pod(9000), NODES[0])
    assert world.fitting(a_need(0)) == ["n0", "n1", "n2"]
    assert world.fitting(a_need(1)) == ["n1", "n2"]


def test_a_node_takes_no_more_pods_than_it_says() -> None:
    world = World()
    for index in range(3):
        world.run(f"web-{index}", a_pod(), NODES[0])
    assert world.fitting(a_need()) == ["n1", "n2"]


def test_a_resource_that_a_node_does_not_name_is_lacking_unless_every_node_names_it() -> None:
    world = World()
    world.put(NODES[0])
    hca = Need(NodeWish(), PodResources(amounts=(("rdma/hca", 1),)))
    assert world.fitting(hca) == []
    assert "n0" in world.fitting(a_need(1)), "its kubelet has not reported yet"


def test_a_host_port_is_used_once() -> None:
    world, port = World(), HostPort(8080)
    world.run("web", a_pod(ports=(port,)), NODES[0])
    assert world.fitting(a_need(ports=(port,))) == ["n1", "n2"]
    assert world.fitting(a_need(ports=(HostPort(8080, "UDP"),))) == ["n0", "n1", "n2"]
    assert world.fitting(a_need(ports=(HostPort(8080, "TCP", "10.0.0.1"),))) == ["n1", "n2"]


def test_anti_affinity_by_host_name_holds_in_both_directions() -> None:
    world = World()
    db = PodSelector(("lab",), (LabelRule("app", "In", ("db",)),))
    world.run("db", a_pod(labels={"app": "db"}), NODES[0])
    world.run("loner", a_pod(keeps_off=(db,)), NODES[1])
    assert world.fitting(a_need(keeps_off=(db,))) == ["n1", "n2"]
    member = world.run("member", a_pod(labels={"app": "db"}), None)
    assert list(world.nodes.closed_to([member])) == ["n1"]
    world.nodes.take_grown()
    world.fitting(a_need(1))
    world.room.lose(PodUid("loner"))
    assert list(world.nodes.closed_to([member])) == []
    assert a_need(1) in world.nodes.take_grown(), "a gang that was kept off may fit now"


def test_what_pods_that_may_be_ended_use_can_be_freed() -> None:
    world, need = World(), a_need(5000)
    mine = world.run("mine", a_pod(4000), NODES[0])
    world.room.seat(mine, NODES[0], is_endable=True)
    world.run("web", a_pod(4000), NODES[1])
    assert sorted(world.nodes.freeable([need])) == ["n0", "n2"]
    assert sorted(world.nodes.suiting([need])) == ["n0", "n1", "n2"]


def test_members_on_one_node_need_room_together() -> None:
    world, need = World(), a_need(5000)
    seats = [(world.run(f"m-{index}", a_pod(5000), None), NODES[0]) for index in range(2)]
    assert world.nodes.crowded(seats[:1], needs=[need]) == {}
    assert world.nodes.crowded(seats, needs=[need]) == {"n0": 1}
    apart = [(uid, node) for (uid, _), node in zip(seats, NODES, strict=False)]
    assert world.nodes.crowded(apart, needs=[need]) == {}


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(ports=(HostPort(80),)),
        a_pod(labels={"a": "b"}, keeps_off=(PodSelector(None, (LabelRule("a", "Exists"),)),)),
    ],
    ids=["port", "anti-affinity"],
)
def test_members_that_exclude_each_other_are_not_on_one_node(pod: NodePod) -> None:
    world, need = World(), Need(NodeWish(), pod.resources)
    seats = [(world.run(f"m-{index}", pod, None), NODES[0]) for index in range(2)]
    assert world.nodes.crowded(seats, needs=[need]) == {"n0": 1}


def test_a_victim_that_ends_makes_room_for_members() -> None:
    world, need = World(), a_need(5000)
    victim = world.run("victim", a_pod(4000), NODES[0])
    member = world.run("member", a_pod(5000), None)
    seats = [(member, NODES[0])]
    assert world.nodes.crowded(seats, needs=[need]) == {"n0": 0}
    assert world.nodes.crowded(seats, needs=[need], ending=[victim]) == {}


def test_only_needs_that_fit_more_nodes_than_before_are_woken() -> None:
    world, small, large = World(), a_need(1000), a_need(8000)
    web = world.run("web", a_pod(4000), NODES[0])
    world.fitting(small)
    world.fitting(large)
    world.nodes.take_grown()
    world.run("web-2", a_pod(1000), NODES[0])
    assert list(world.nodes.take_grown()) == []
    world.room.lose(web)
    assert list(world.nodes.take_grown()) == [], "1 CPU of n0 is still used"
    world.room.lose(PodUid("web-2"))
    assert list(world.nodes.take_grown()) == [large]
    world.put(NODES[1], cpu=16000, pods=3)
    assert list(world.nodes.take_grown()) == []


def test_a_need_is_woken_when_a_crowded_node_changes() -> None:
    world, need = World(), a_need(5000)
    world.fitting(need)
    seats = [(world.run(f"m-{index}", a_pod(5000), None), NODES[0]) for index in range(2)]
    assert world.nodes.crowded(seats, needs=[need]) == {"n0": 1}
    world.nodes.take_grown()
    world.put(NODES[0], cpu=16000, pods=3)
    assert list(world.nodes.take_grown()) == [need]


def test_what_is_short_is_told_with_numbers() -> None:
    world, need = World(), a_need(5000)
    assert world.nodes.shortage([need]) is None
    for node in NODES[1:]:
        world.run(f"web-{node}", a_pod(4000), node)
    assert world.nodes.shortage([need]) == Shortage(
        resource="cpu", asked=5000, short=2, nodes=3, node="n1", free=4000, total=8000
    )


def test_growth_is_told_at_once() -> None:
    world, told = World(), list[str]()
    world.room.on_growth.append(lambda: told.append("grown"))
    uid = world.run("web", a_pod(4000), NODES[0])
    assert told == []
    world.room.lose(uid)
    assert told == ["grown"]


def test_the_nodes_of_a_need_follow_labels_and_nodes() -> None:
    world, zone_a = World(), a_need(selector={"zone": "a"})
    assert world.fitting(zone_a) == []
    assert world.put(NODES[0], {"zone": "a"}, cpu=8000, pods=3)
    assert not world.put(NODES[0], {"zone": "a"}, cpu=8000, pods=3)
    assert world.put(NODES[1], {"zone": "a"}, cpu=8000, pods=3)
    assert world.fitting(zone_a) == ["n0", "n1"]
    world.put(NODES[0], {"zone": "b"}, cpu=8000, pods=3)
    world.nodes.remove(NODES[1])
    assert world.fitting(zone_a) == []
    assert sorted(world.nodes.fitting([])) == ["n0", "n2"]


def test_several_needs_must_all_be_met_and_some_nodes_left_out() -> None:
    world = World()
    for name in NODES[1:]:
        world.put(name, {"zone": "a"}, cpu=8000, pods=3)
    needs = [a_need(selector={"zone": "a"}), a_need(1000)]
    assert list(world.nodes.fitting(needs, without=[NODES[2]])) == ["n1"]


def test_a_need_that_was_not_asked_for_long_is_forgotten_and_found_again() -> None:
    world = World()
    for cpu in range(1, 200):
        world.fitting(a_need(cpu))
    world.nodes.take_grown()
    world.run("web", a_pod(8000), NODES[0])
    assert a_need(1) in world.nodes.take_grown(), "a gang with this need may wait"
    assert world.fitting(a_need(1)) == ["n1", "n2"]


def test_a_need_that_is_forgotten_is_woken_when_a_pod_with_anti_affinity_ends() -> None:
    world = World()
    db = PodSelector(("lab",), (LabelRule("app", "In", ("db",)),))
    loner = world.run("loner", a_pod(keeps_off=(db,)), NODES[0])
    for cpu in range(1, 200):
        world.fitting(a_need(cpu))
    world.nodes.take_grown()
    world.room.lose(loner)
    assert {a_need(1), a_need(199)} <= {*world.nodes.take_grown()}


def test_a_forgotten_need_is_woken_though_one_gang_with_it_is_planned_meanwhile() -> None:
    world = World()
    web = world.run("web", a_pod(8000), NODES[0])
    for cpu in range(1, 200):
        world.fitting(a_need(cpu))
    world.nodes.take_grown()
    world.room.lose(web)
    world.fitting(a_need(1))
    assert a_need(1) in world.nodes.take_grown(), "others with this need may wait"


def test_pods_on_a_node_that_comes_back_still_count() -> None:
    world, need = World(), a_need(5000)
    world.run("web", a_pod(4000), NODES[0])
    world.nodes.remove(NODES[0])
    assert world.fitting(need) == ["n1", "n2"]
    world.put(NODES[0], cpu=8000, pods=3)
    assert world.fitting(need) == ["n1", "n2"]
