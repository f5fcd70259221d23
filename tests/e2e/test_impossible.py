"""What can never be is told at apply: promises beyond the nodes, and workloads beyond promises."""

import asyncio
import json
import secrets
from typing import Any

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubectl import KubectlResult
from tests.controlplane.nodes import NodeShape
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import running
from tests.support.installed.installation import NAMESPACE, Installation
from tests.support.installed.policies import (
    create_pod,
    delete_policy,
    policy_of_admin,
    put_policy,
)
from tests.support.kube.pods import a_new_pod
from tests.support.kube.workloads import a_template, a_workload

RACK, NODE = "topology.kubernetes.io/rack", "kubernetes.io/hostname"
TYPE = NodeShape().gpu_product


@pytest.fixture(scope="module")
def node_count() -> int:
    """Two racks of four nodes."""
    return 8


async def apply(
    plane: ControlPlane, obj: dict[str, Any], *, namespace: str = NAMESPACE, user: str = "admin"
) -> KubectlResult:
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **obj})
    arguments = ("apply", "-n", namespace, "-f", "-")
    return await plane.kubectl(*arguments, stdin=text, user=user, check=False)


def cluster(*, expected: str = "[]", **vcs: tuple[str, int]) -> dict[str, Any]:
    promises = {
        name: {"virtualCells": [{"leafType": TYPE, "level": level, "cellNumber": count}]}
        for name, (level, count) in vcs.items()
    }
    text = f"""
nodeTopology:
- levels: [{RACK}, {NODE}]
  leafResource: nvidia.com/gpu
  leafTypeLabel: nvidia.com/gpu.product
expectedNodes: {expected}
virtualClusters: {json.dumps({"default": {"virtualCells": []}, **promises})}
"""
    return policy_of_admin("cluster", text)


async def backing(cellgate: Installation) -> dict[str, list[tuple[int, int]]]:
    """Promised and backed cells by VC."""
    items = (await cellgate.inspect("/v1/vcs"))["items"]
    return {vc["vc"]: [(one["promised"], one["backed"]) for one in vc["promises"]] for vc in items}


async def is_backed(cellgate: Installation, **wanted: list[tuple[int, int]]) -> None:
    found: dict[str, Any] = {}

    async def look() -> bool:
        found.update(await backing(cellgate))
        return all(found.get(vc) == cells for vc, cells in wanted.items())

    await poll_until(look, deadline_seconds=15, explain=lambda: f"{found} is not {wanted}")


async def test_only_a_promise_that_a_change_raises_beyond_the_nodes_is_refused(
    plane: ControlPlane, cellgate: Installation
) -> None:
    assert (await apply(plane, cluster(lab=(RACK, 1), big=(RACK, 1)))).returncode == 0
    await is_backed(cellgate, lab=[(1, 1)], big=[(1, 1)])

    refused = await apply(plane, cluster(lab=(NODE, 2), big=(RACK, 30)))
    assert refused.returncode == 1
    assert (
        f'virtualClusters.big.virtualCells[0].cellNumber: 30 cells of level "{RACK}" promised, but '
        f'nodes of leaf type "{TYPE}" seen in the last 7 days do not back it: of level "{RACK}", '
        "30 are promised in all and 2 can be given; lower it, or declare nodes that will be added "
        "under expectedNodes"
    ) in refused.stderr

    coming = f"[{{leafType: {TYPE}, nodes: 30, leafCells: 8}}]"
    assert (
        await apply(plane, cluster(expected=coming, lab=(NODE, 2), big=(RACK, 30)))
    ).stderr == ""
    await is_backed(cellgate, lab=[(2, 2)], big=[(30, 1)])
    events = await plane.kubectl("get", "events", "-n", NAMESPACE, "-o", "json")
    told = [one for one in json.loads(events.stdout)["items"] if one["reason"] == "PromisesCut"]
    assert [one["type"] for one in told] == ["Warning"]
    assert "30 cells promised" in told[0]["message"]
    assert "back only 1 of them" in told[0]["message"]


async def test_during_an_outage_the_document_can_be_edited(
    plane: ControlPlane, cellgate: Installation
) -> None:
    assert (await apply(plane, cluster(lab=(NODE, 4), big=(RACK, 1)))).returncode == 0
    await is_backed(cellgate, lab=[(4, 4)], big=[(1, 1)])
    gone = [0, 1, 2, 4, 5]
    await plane.delete_nodes([f"node-{number}" for number in gone])
    await is_backed(cellgate, lab=[(4, 2)], big=[(1, 1)])
    await asyncio.sleep(1)  # the leader notes which nodes are gone
    for document in (cluster(lab=(NODE, 3), big=(RACK, 1)), cluster(lab=(NODE, 4), big=(RACK, 1))):
        assert (await apply(plane, document)).returncode == 0
    assert (await apply(plane, cluster(lab=(NODE, 5), big=(RACK, 1)))).returncode == 1
    for number in gone:
        await plane.add_nodes(1, NodeShape(gpus=8), first=number)
    await is_backed(cellgate, lab=[(4, 4)], big=[(1, 1)])


def a_job(
    *,
    gpus: int = 8,
    cpu: str = "1",
    size: int = 2,
    leaf_type: str = "",
    vc: str = "lab",
    **spec: Any,
) -> dict[str, Any]:
    """An indexed Job that is a gang of its pods, suspended: it is only to be reviewed."""
    labels = {
        "cellgate.io/gang-size": str(size),
        **({"cellgate.io/vc": vc} if vc else {}),
        **({"cellgate.io/leaf-type": leaf_type} if leaf_type else {}),
    }
    pod = a_new_pod("unused").with_gpus(gpus).of_class("test").with_spec(restartPolicy="Never")
    pod["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = cpu
    fields = {"completionMode": "Indexed", "parallelism": size, "completions": size, **spec}
    template = a_template(pod.with_metadata(labels=labels))
    name = f"job-{secrets.token_hex(3)}"
    return a_workload("Job", name, template=template, namespace=None, suspend=True, **fields)


NEVER = {
    "VC": (
        a_job(size=5),
        "can never start: it needs 40 leaf cells, but VC lab was promised at most 32 that one gang "
        "can use",
    ),
    "node": (
        a_job(gpus=16, size=1),
        "can never start: one pod asks for 16 leaf cells, but the largest cell of VC lab within "
        "one node has 8",
    ),
    "CPU": (
        a_job(cpu="129"),
        "can never start: one pod requests 129 CPUs, but the largest node has 128 CPUs",
    ),
    "leaf type": (a_job(leaf_type="A1000"), "can never start: no node has leaf type A1000"),
    "parallelism": (
        a_job(size=4, parallelism=2),
        "can never start: cellgate.io/gang-size is 4, but parallelism is 2",
    ),
}


async def test_what_can_never_start_is_told_at_apply_or_refused_by_policy(
    plane: ControlPlane, cellgate: Installation
) -> None:
    assert (await apply(plane, cluster(lab=(NODE, 4)))).returncode == 0
    await is_backed(cellgate, lab=[(4, 4)])
    namespace = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    async def submit(job: dict[str, Any]) -> KubectlResult:
        return await apply(plane, job, namespace=namespace, user="alice")

    async def is_known() -> bool:
        return "can never start" in (await submit(a_job(size=5))).stderr

    await poll_until(is_known, deadline_seconds=20, explain=lambda: "nodes are not known")
    results = await asyncio.gather(*(submit(job) for job, _ in NEVER.values()))
    for (_, sentence), told in zip(NEVER.values(), results, strict=True):
        assert (told.returncode, f"Warning: cellgate: {sentence}" in told.stderr) == (0, True), told
    deadline = await submit(a_job(activeDeadlineSeconds=60))
    assert "Warning: cellgate: spec.activeDeadlineSeconds (60) counts the time" in deadline.stderr
    assert "can never start" not in deadline.stderr

    await put_policy(plane, "rules", "impossible: refuse\nrules: []\n")

    async def refuses() -> bool:
        return (await submit(a_job(size=5))).returncode == 1

    await poll_until(refuses, deadline_seconds=10, explain=lambda: "the rules are not in force")
    for job, sentence in NEVER.values():
        fresh = {**job, "metadata": {"name": f"again-{secrets.token_hex(3)}"}}
        refused = await submit(fresh)
        assert (refused.returncode, sentence in refused.stderr) == (1, True), refused
    assert (await submit(a_job())).stderr == ""
    await delete_policy(plane, "rules")


async def test_a_namespace_without_a_vc_is_told_the_label_that_is_missing(
    plane: ControlPlane, cellgate: Installation
) -> None:
    document = cluster(lab=(NODE, 4))
    policy = document["data"]["policy.yaml"].replace('"default": {"virtualCells": []}, ', "")
    assert (await apply(plane, {**document, "data": {"policy.yaml": policy}})).returncode == 0
    job = a_job(vc="")

    async def is_told() -> bool:
        refused = await apply(plane, job, namespace="default", user="alice")
        return (
            'there is no VC "default"; neither the pod nor its namespace has the label '
            "cellgate.io/vc; VCs open to you: lab" in refused.stderr
        )

    await poll_until(is_told, deadline_seconds=10, explain=lambda: "the label is not named")


def domains(*, are_named: bool) -> dict[str, Any]:
    """Nodes with the labels pool=east and pool=west; va is promised two, vb one of them."""
    names = {"east": "vb", "west": "va"}
    entries = [
        {
            **({"name": name} if are_named else {}),
            "nodeSelector": {"pool": name},
            "levels": [NODE],
            "leafResource": "nvidia.com/gpu",
            "leafTypeLabel": "nvidia.com/gpu.product",
        }
        for name in names
    ]
    promises = {
        vc: {
            "virtualCells": [
                {
                    "leafType": TYPE,
                    "level": NODE,
                    "cellNumber": 2 if vc == "va" else 1,
                    **({"domain": name} if are_named else {}),
                }
            ]
        }
        for name, vc in names.items()
    }
    vcs = {"default": {"virtualCells": []}, **promises}
    text = f"nodeTopology: {json.dumps(entries)}\nvirtualClusters: {json.dumps(vcs)}\n"
    return policy_of_admin("cluster", text)


async def move(plane: ControlPlane, pool: str, *nodes: str) -> None:
    await plane.kubectl("label", "--overwrite", "node", *nodes, f"pool={pool}")


async def test_promises_name_their_domain_and_nodes_move_between_domains(
    plane: ControlPlane, cellgate: Installation
) -> None:
    await delete_policy(plane, "rules")
    await asyncio.gather(move(plane, "east", "node-0"), move(plane, "west", "node-1", "node-2"))
    unclear, told = domains(are_named=False), ""

    async def is_refused() -> bool:
        nonlocal told
        text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **unclear})
        arguments = ("apply", "--dry-run=server", "-n", NAMESPACE, "-f", "-")
        told = (await plane.kubectl(*arguments, stdin=text, check=False)).stderr
        return "is required" in told

    await poll_until(is_refused, deadline_seconds=15, explain=lambda: f"not refused: {told}")
    assert (
        f'virtualClusters.va.virtualCells[0].domain: is required: nodes of leaf type "{TYPE}" were '
        "seen under nodeTopology[0], nodeTopology[1]; give these entries names, and name the "
        "promise's domain"
    ) in told

    assert (await apply(plane, domains(are_named=True))).stderr == ""
    await is_backed(cellgate, va=[(2, 2)], vb=[(1, 1)])
    vcs = {vc["vc"]: vc["promises"] for vc in (await cellgate.inspect("/v1/vcs"))["items"]}
    assert [one["domain"] for one in (*vcs["va"], *vcs["vb"])] == ["west", "east"]

    namespace = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    labels = {"cellgate.io/vc": "va", "cellgate.io/gang": "pair", "cellgate.io/gang-size": "2"}
    for name in ("pair-0", "pair-1"):
        metadata = {"labels": labels}
        await create_pod(
            plane,
            namespace,
            name,
            gpus=8,
            class_name="prod",
            metadata=metadata,
            spec={"terminationGracePeriodSeconds": 0},
        )
    path = f"/api/v1/namespaces/{namespace}/pods"
    placed = await running(plane, path, "pair", size=2)
    assert sorted(pod["spec"]["nodeName"] for pod in placed) == ["node-1", "node-2"]

    spec = {"nodeSelector": {"pool": "east"}}
    await create_pod(plane, namespace, "one-0", class_name="oppo", spec=spec)
    (one,) = await running(plane, path, "one", size=1)
    assert one["spec"]["nodeName"] == "node-0"
    (own,) = [vc for vc in (await cellgate.inspect("/v1/vcs"))["items"] if vc["vc"] == "va"]
    assert [cell["chain"] for cell in own["cells"] if "mappedTo" in cell] == [f"{TYPE}@west"] * 2

    await move(plane, "west", "node-0")
    await is_backed(cellgate, va=[(2, 2)], vb=[(1, 0)])
    await move(plane, "east", "node-2")
    await is_backed(cellgate, va=[(2, 2)], vb=[(1, 1)])
    placed = await running(plane, path, "pair", size=2)
    assert sorted(pod["spec"]["nodeName"] for pod in placed) == ["node-1", "node-2"]
