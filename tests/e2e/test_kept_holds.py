"""A user does not lift the hold of an admin by letting a controller create the pods again."""

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.support.installed.gangs import create, gang_pods, running
from tests.support.installed.installation import Installation
from tests.support.installed.jobs import submit_job


@pytest.fixture(scope="module")
def node_count() -> int:
    return 2


async def _waiting_pod(cellgate: Installation, code: str | None) -> str:
    """The pod of the only gang that waits, once it waits for this reason; empty for none."""
    found: list[tuple[str, str]] = []

    async def look() -> bool:
        found[:] = [(one["code"], one["pod"]) for one in await cellgate.waiting()]
        return [why for why, _ in found] == ([] if code is None else [code])

    await poll_until(look, deadline_seconds=15, explain=lambda: f"waiting: {found}")
    return found[0][1].split("/")[1] if found else ""


async def test_the_hold_of_an_admin_stays_when_its_owner_suspends_and_resumes_the_job(
    plane: ControlPlane, cellgate: Installation, pods: str
) -> None:
    await create(plane, pods, gang_pods("first", size=2, gpus=8))
    await running(plane, pods, "first", size=2)
    await submit_job(plane, pods, "job")
    before = await _waiting_pod(cellgate, "no-room")
    hold = {"metadata": {"annotations": {"cellgate.io/hold": "maintenance"}}}
    await plane.api.patch(f"{pods}/{before}", hold)
    await _waiting_pod(cellgate, "held-by-admin")
    job = f"/apis/batch/v1/namespaces/{pods.split('/')[4]}/jobs/job"
    await plane.api_as("bob").patch(job, {"spec": {"suspend": True}})
    await _waiting_pod(cellgate, None)
    await plane.api_as("bob").patch(job, {"spec": {"suspend": False}})
    after = await _waiting_pod(cellgate, "held-by-admin")
    assert after != before

    async def is_written() -> bool:
        pod = await plane.api.get(f"{pods}/{after}")
        return "cellgate.io/held-by" in pod["metadata"]["annotations"]

    await poll_until(is_written, deadline_seconds=15, explain=lambda: "the pod states no hold")
    lifted = {"metadata": {"annotations": {"cellgate.io/hold": None}}}
    with pytest.raises(ApiError, match="a policy admin may lift that"):
        await plane.api_as("bob").patch(f"{pods}/{after}", lifted)
    listed = await plane.api.get(pods)
    for name in [one["metadata"]["name"] for one in listed["items"]]:
        if "cellgate.io/hold" in (await plane.api.get(f"{pods}/{name}"))["metadata"]["annotations"]:
            await plane.api.patch(f"{pods}/{name}", lifted)
    await _waiting_pod(cellgate, "no-room")
