"""Pods that an earlier commit has decided upon: this one goes on where it stopped."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from extender.cluster.replay import replay_epoch
from kube import marks
from kube.read.managed_pod import ManagedPod
from kube.read.pods import read_pod
from simulation.objects.fields import Object
from state.database.database import Database, open_database
from state.log.postgres import PostgresDecisions
from tests.compatibility.written import Written
from tests.support.services.commands import Service, running
from tests.support.state.ledgers import a_patient_ledger

_SECONDS = 30


def test_every_pod_is_read_as_it_was(written: Written) -> None:
    labels = {
        obj["metadata"]["name"]: obj["metadata"]["labels"]
        for obj in written.objects
        if obj["kind"] == "Namespace"
    }
    read = (
        read_pod(obj, namespace_labels=labels[obj["metadata"]["namespace"]]) for obj in written.pods
    )
    assert {pod.display_name: _shown(pod) for pod in read if pod} == written.answers["pods"]


def _shown(pod: ManagedPod) -> dict[str, Any]:
    placement = pod.placement
    fields = {
        "uid": pod.uid,
        "gang": str(pod.gang.key),
        "size": pod.gang.size,
        "min": pod.gang.min_size,
        "vc": pod.vc,
        "leafCount": pod.leaf_count,
        "class": pod.class_name,
        "requestedClass": pod.requested_class,
        "decision": pod.decision,
        "submitter": pod.submitter,
        "submitterGroups": list(pod.submitter_groups),
        "group": pod.charged_group,
        "node": pod.node,
        "gated": pod.is_gated,
        "released": pod.is_released,
        "uncharged": pod.is_uncharged,
        "deleting": pod.is_deleting,
        "placement": placement
        and {"node": placement.node, "leafCells": list(placement.leaf_cells)},
    }
    return {name: value for name, value in fields.items() if value}


@pytest.fixture
async def kubeconfig(written: Written, tmp_path: Path) -> AsyncIterator[Path]:
    """A cluster that holds the objects which the earlier commit has left."""
    cluster = written.build_cluster()
    await cluster.serve()
    cluster.save_kubeconfig(tmp_path / "kubeconfig")
    yield tmp_path / "kubeconfig"
    await cluster.close()


async def test_an_extender_takes_over(
    kubeconfig: Path, empty_database_url: str, written: Written, tmp_path: Path
) -> None:
    """Pods, Lease, database and spool are as they were left: the extender migrates by itself."""
    spool = written.copy_spool("extender", tmp_path / "spool")
    async with open_database(empty_database_url, application_name="tests") as database:
        await written.restore(database.pool)
        async with running(
            "extender",
            kubeconfig=kubeconfig,
            database_url=database.url,
            folder=tmp_path,
            flags=[f"--spool-dir={spool}", "--pod-name=extender-1"],
        ) as extender:
            epoch = await _lead(extender)
            assert epoch > written.last_epoch
            assert await _read_bound(extender) == written.answers["recovered"]
            await _until_written(extender)
            subjects = {item["subject"] for item in await _items(extender, "/v1/decisions")}
            assert {"vision/bert", "lab/boss"} <= subjects
        await _check_epochs(database, [*written.epochs, epoch])
        await _check_charges(database, written)


async def _lead(extender: Service) -> int:
    """Wait until it leads; its epoch."""
    async with asyncio.timeout(_SECONDS):
        while (await extender.get("/leader"))[0] != 200:
            await asyncio.sleep(0.05)
    return int(json.loads((await extender.get("/leader"))[1])["epoch"])


async def _items(extender: Service, path: str) -> list[dict[str, Any]]:
    page: dict[str, Any] = json.loads((await extender.get(f"{path}?limit=1000"))[1])
    items: list[dict[str, Any]] = page["items"]
    return items


async def _read_bound(extender: Service) -> dict[str, Any]:
    """The leaf cells of bound pods; those that wait may be planned at any moment."""
    return {
        member["uid"]: {
            "gang": gang["gang"],
            "vc": gang["vc"],
            "priority": gang["priority"],
            "node": member["node"],
            "leafCells": member["leafCells"],
        }
        for gang in await _items(extender, "/v1/gangs")
        for member in gang["members"]
        if member["bound"]
    }


async def _until_written(extender: Service) -> None:
    async with asyncio.timeout(_SECONDS):
        while await extender.metric("cellgate_log_pending_rows") > 0:
            await asyncio.sleep(0.05)


async def _check_epochs(database: Database, epochs: list[int]) -> None:
    """The epochs of both commits are decided again as they were."""
    for epoch in epochs:
        report = await replay_epoch(PostgresDecisions(database.pool), epoch=epoch)
        assert report.differences == []
        assert report.is_identical
        assert report.rows


async def _check_charges(database: Database, written: Written) -> None:
    """Charges of pods that exist are kept."""
    kept = await a_patient_ledger(database.pool).charges()
    decisions = {str(live.charge.decision) for live in kept}
    assert {charge["decision"] for charge in written.answers["charges"]} <= decisions


class TestAWebhookTakesOver:
    """A rolling update: what one replica has begun is finished by another."""

    @pytest.fixture
    async def webhook(
        self, kubeconfig: Path, older_database: Database, tmp_path: Path
    ) -> AsyncIterator[Service]:
        async with running(
            "webhook", kubeconfig=kubeconfig, database_url=older_database.url, folder=tmp_path
        ) as webhook:
            await webhook.until_ready()
            yield webhook

    async def test_pods_that_the_older_one_mutated_are_valid(
        self, webhook: Service, written: Written
    ) -> None:
        gated = [pod for pod in written.pods if pod["spec"].get("schedulingGates")]
        assert gated
        for pod in gated:
            answer = await _review(webhook, "/validate/pods", pod)
            assert answer["allowed"], answer

    async def test_marks_of_the_older_one_are_protected(
        self, webhook: Service, written: Written
    ) -> None:
        for pod in written.pods:
            if marks.PLACEMENT_ANNOTATION not in pod["metadata"].get("annotations", {}):
                continue
            labelled, moved = json.loads(json.dumps(pod)), json.loads(json.dumps(pod))
            labelled["metadata"].setdefault("labels", {})["note"] = "mine"
            answer = await _review(webhook, "/validate/pods", labelled, before=pod)
            assert answer["allowed"], answer
            moved["metadata"]["annotations"][marks.PLACEMENT_ANNOTATION] = "{}"
            answer = await _review(webhook, "/validate/pods", moved, before=pod)
            assert not answer["allowed"]

    async def test_a_member_that_comes_late_follows_the_older_decision(
        self, webhook: Service, written: Written
    ) -> None:
        first = written.answers["pods"]["lab/half-0"]
        [like] = [pod for pod in written.pods if pod["metadata"]["name"] == "half-0"]
        late = {
            "metadata": {
                "name": "half-2",
                "namespace": "lab",
                "labels": {
                    key: value
                    for key, value in like["metadata"]["labels"].items()
                    if key != marks.GROUP_LABEL
                },
            },
            "spec": {"containers": like["spec"]["containers"], "priorityClassName": "oppo"},
        }
        answer = await _review(webhook, "/mutate/pods", late, user="erin", groups=["lab"])
        assert answer["allowed"], answer
        patch = base64.b64decode(answer["patch"]).decode()
        assert first["decision"] in patch

    async def test_a_stamp_of_the_older_one_stays(self, webhook: Service, written: Written) -> None:
        [job] = [obj for obj in written.objects if obj["kind"] == "Job"]
        changed = json.loads(json.dumps(job))
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        answer = await _review(
            webhook, "/mutate/templates", changed, before=job, user="alice", groups=["vision"]
        )
        assert answer["allowed"], answer
        assert "patch" not in answer
        forged = json.loads(json.dumps(changed))
        stamps = forged["spec"]["template"]["metadata"]["annotations"]
        stamps[marks.SUBMITTER_ANNOTATION] = "carol"
        answer = await _review(
            webhook, "/mutate/templates", forged, before=job, user="alice", groups=["vision"]
        )
        assert not answer["allowed"], answer


async def _review(
    webhook: Service,
    path: str,
    obj: Object,
    *,
    before: Object | None = None,
    user: str = "dave",
    groups: list[str] | None = None,
) -> dict[str, Any]:
    request = {
        "uid": str(uuid.uuid4()),
        "operation": "UPDATE" if before else "CREATE",
        "namespace": obj["metadata"]["namespace"],
        "name": obj["metadata"]["name"],
        "userInfo": {"username": user, "groups": groups or []},
        "object": obj,
        "oldObject": before,
    }
    async with webhook.http.post(
        webhook.url + path, json={"request": request}, ssl=False
    ) as answer:
        response: dict[str, Any] = (await answer.json())["response"]
    return response
