"""Dry runs of policy documents on a real control plane: what a change would have decided lately."""

import json
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.identity import User
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation
from tests.support.installed.policies import (
    CONFIG_MAPS,
    create_pod,
    delete_policy,
    policy_of_admin,
    put_rules,
)


@pytest.fixture(scope="module")
def plane_options() -> ControlPlaneOptions:
    return ControlPlaneOptions(users=(User("carol"), User("marker")))


@pytest.fixture(scope="module")
def node_count() -> int:
    return 2


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(plane: ControlPlane, cellgate: Installation) -> AsyncIterator[str]:
    """A namespace of the test's own; policies of the test go with it."""
    name = f"test-{secrets.token_hex(4)}"
    await plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    await delete_policy(plane, "rules")
    await plane.api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds="0")


async def test_a_dry_run_of_rules_tells_what_they_would_have_changed(
    plane: ControlPlane, namespace: str
) -> None:
    await put_rules(plane, namespace, [])
    for number in range(3):
        await create_pod(plane, namespace, f"past-{number}", user="carol", class_name="prod")
    table = [{"user": "^carol$", "priority": "prod", "then": "oppo"}]
    data = policy_of_admin("rules", f"rules: {json.dumps(table)}")["data"]
    api = plane.api

    async def is_told() -> bool:
        """Rows are read some seconds after they are written; other tests have rows, too."""
        await api.patch(f"{CONFIG_MAPS}/cellgate-rules", {"data": data}, dryRun="All")
        return any("lowered to oppo (carol 3)" in line for line in api.warnings)

    await poll_until(
        is_told, deadline_seconds=90, explain=lambda: f"the warnings are {api.warnings}"
    )
    [told] = [line for line in api.warnings if "lowered to oppo" in line]
    assert told.startswith("cellgate: over the last ")
    assert "3 gangs more would have been lowered" in told
    # Nothing was applied, and a real apply is told nothing.
    pod = await create_pod(plane, namespace, "later", user="carol", class_name="prod")
    assert pod["spec"]["priorityClassName"] == "prod"
    await api.patch(f"{CONFIG_MAPS}/cellgate-rules", {"data": data})
    assert not any("over the last" in line for line in api.warnings)
