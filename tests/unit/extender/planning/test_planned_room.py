"""Gangs are planned with the CPU and the other room that nodes have, beside leaf cells."""

from kube.read.node_choice import NodeRequirement
from policy.placement import Placement
from policy.submission import NodeName, PodUid
from policy.topology import ChainName
from tests.support.extender.planning import Planning, planning
from tests.support.kube.nodes import a_node
from tests.support.kube.pods import PodBuilder, a_pod

NODES = [f"node-{index:02}" for index in range(4)]


def _put_nodes(plans: Planning, *, cpu: str = "100") -> None:
    for name in NODES:
        allocatable = {"nvidia.com/gpu": "8", "cpu": cpu, "memory": "1Ti", "pods": "110"}
        plans.nodes.upsert(a_node(name).with_status(allocatable=allocatable, capacity=allocatable))


def _asking(pod: PodBuilder, **requests: str) -> PodBuilder:
    container = pod["spec"]["containers"][0]
    resources = {**container["resources"], "requests": requests}
    return pod.with_spec(containers=[{**container, "resources": resources}])


def _web(name: str, node: str, *, cpu: str = "90") -> PodBuilder:
    """A pod without leaf cells that runs."""
    return a_pod(name).with_cpu(cpu).bound_to(node)


def _gang(name: str, *, size: int, gpus: int = 8, cpu: str = "64") -> list[PodBuilder]:
    pods = (a_pod(f"{name}-{n}").with_gpus(gpus).in_vc("lab") for n in range(size))
    return [_asking(pod.in_gang(name, size=size), cpu=cpu).gated() for pod in pods]


def _submit(plans: Planning, pods: list[PodBuilder]) -> None:
    for pod in pods:
        plans.pods.upsert(pod)


async def test_a_gang_gets_nodes_that_have_cpu() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        for name in NODES[:2]:
            plans.pods.upsert(_web(f"web-{name}", name))
        _submit(plans, _gang("bert", size=2))
        assert len(await plans.looked()) == 2
        assert plans.placed() == NODES[2:]


async def test_a_gang_waits_whole_for_cpu_and_starts_when_a_pod_ends() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        for name in NODES[:3]:
            plans.pods.upsert(_web(f"web-{name}", name))
        _submit(plans, _gang("bert", size=2))
        assert await plans.looked() == []
        assert plans.waiting() == {
            "lab/bert": "gang lab/bert needs 2 x 8 leaf cells and 64 CPUs for each member; there "
            "are leaf cells for it, but 3 of the 4 nodes that it may use lack cpu, such as node-00 "
            "with 10 CPUs free of 100 CPUs; starts once pods on these nodes have ended, or with "
            "smaller requests"
        }
        plans.pods.upsert(_web("web-node-01", NODES[1]).in_phase("Succeeded"))
        assert len(await plans.looked()) == 2
        assert plans.placed() == [NODES[1], NODES[3]]
        assert plans.waiting() == {}


async def test_a_node_that_grows_wakes_a_gang() -> None:
    async with planning() as plans:
        _put_nodes(plans, cpu="32")
        _submit(plans, _gang("bert", size=4))
        assert await plans.looked() == []
        _put_nodes(plans, cpu="64")
        assert len(await plans.looked()) == 4


async def test_pods_that_come_and_go_do_not_make_gangs_be_planned_again() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        for name in NODES:
            plans.pods.upsert(_web(f"web-{name}", name))
        _submit(plans, _gang("bert", size=2))
        assert await plans.looked() == []
        asked = plans.shell.cluster.version
        for index in range(100):
            plans.pods.upsert(_web(f"cron-{index}", NODES[index % 4], cpu="1"))
            await plans.looked()
            plans.pods.remove(_web(f"cron-{index}", NODES[index % 4], cpu="1"))
            await plans.looked()
        assert plans.shell.cluster.version == asked


async def test_leased_members_use_cpu_before_they_are_bound() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        _submit(plans, [pod for n in range(4) for pod in _gang(f"first-{n}", size=1, gpus=4)])
        assert len(await plans.looked()) == 4
        assert plans.placed() == NODES
        _submit(plans, _gang("next", size=1, gpus=1))
        assert len(await plans.looked()) == 4
        assert "lack cpu" in plans.waiting()["lab/next"]


async def test_members_that_have_no_room_together_are_put_on_different_nodes() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        _submit(plans, _gang("bert", size=4, gpus=2))
        assert len(await plans.looked()) == 4
        assert plans.placed() == NODES


async def test_members_with_the_same_host_port_are_put_on_different_nodes() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        pods = _gang("bert", size=3, gpus=1, cpu="1")
        for pod in pods:
            pod["spec"]["containers"][0]["ports"] = [{"hostPort": 29500}]
        _submit(plans, pods)
        assert len(await plans.looked()) == 3
        assert len(set(plans.placed())) == 3


async def test_a_victim_frees_cpu_too() -> None:
    """All nodes are used up by gangs that borrow cells; two of them end."""
    async with planning() as plans:
        _put_nodes(plans)
        _borrow(plans, NODES, cpu="90")
        _submit(plans, _gang("bert", size=2))
        await plans.looked()
        assert "preempts 2 gangs" in plans.waiting()["lab/bert"]


async def test_no_gang_is_ended_for_one_that_lacks_cpu_all_the_same() -> None:
    """The CPU is held by pods that Cellgate does not manage, or by gangs that stay."""
    async with planning() as plans:
        _put_nodes(plans)
        _borrow(plans, NODES, cpu="10")
        for name in NODES:
            plans.pods.upsert(_web(f"web-{name}", name, cpu="50"))
        _submit(plans, _gang("bert", size=2))
        await plans.looked()
        assert "4 of the 4 nodes that it may use lack cpu" in plans.waiting()["lab/bert"]
        assert plans.shell.cluster.gang(plans.shell.pod("bert-0").gang.key) is None


def _borrow(plans: Planning, nodes: list[str], *, cpu: str) -> None:
    """Let an opportunistic gang run on each of these nodes."""
    for name in nodes:
        placement = Placement(
            node=NodeName(name), leaf_cells=tuple(range(8)), chain=ChainName("rack")
        )
        pod = _asking(a_pod(f"low-{name}").with_gpus(8).in_vc("lab"), cpu=cpu)
        plans.pods.upsert(pod.placed(placement).bound_to(name))
    assert all(plans.shell.pods.get(PodUid(f"uid-of-low-{name}")) for name in nodes)


async def test_a_gang_goes_where_its_volume_is_and_is_planned_again_when_it_is_bound() -> None:
    async with planning() as plans:
        _put_nodes(plans)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        (pod,) = _gang("bert", size=1)
        here = ((NodeRequirement("kubernetes.io/hostname", "In", (NODES[2],)),),)
        nowhere = ((NodeRequirement("kubernetes.io/hostname", "In", ("gone",)),),)
        plans.volumes.put_claim(("lab", "data"), "pv")
        plans.volumes.put_volume("pv", nowhere)
        plans.pods.upsert(pod.with_spec(volumes=[volume]))
        assert await plans.looked() == []
        plans.volumes.put_volume("pv", here)
        assert await plans.looked() == ["uid-of-bert-0"]
        assert plans.placed() == [NODES[2]]
        plans.pods.remove(pod)
        plans.volumes.put_volume("pv", None)
