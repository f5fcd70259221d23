"""The cert-manager overlay: cert-manager makes, renews and publishes the certificates."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kube.api.webhook_configurations import GROUP, KINDS
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import poll_until
from tests.e2e.cert_manager import CertManager, mount
from tests.support.installed.installation import NAMESPACE, Installation, prepared
from tests.support.installed.pod_load import Load

_WEBHOOK = "cellgate-webhook"
_CERTIFICATE = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates/{_WEBHOOK}"


@pytest.fixture(scope="module")
def manager(plane: ControlPlane) -> CertManager:
    return CertManager(plane)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane, manager: CertManager) -> AsyncIterator[Installation]:
    mounted = plane.directory / "webhook-certs"
    overlay = "overlays/cert-manager"
    async with prepared(plane, manifests=overlay, webhook_certs=mounted) as installation:
        await manager.define_kinds()
        await installation.apply()
        # The API server of this test calls an address, not our Service.
        await plane.api.patch(_CERTIFICATE, {"spec": {"ipAddresses": ["127.0.0.1"]}})
        await manager.issue(_WEBHOOK)
        await mount(plane, _WEBHOOK, mounted)
        await manager.inject()
        await installation.install()
        yield installation


@pytest.fixture
def _task_watch() -> None:
    """Not here: connections of the installation outlive a test."""


def _served(cellgate: Installation) -> str:
    """The certificate that a new caller is shown."""
    return ssl.get_server_certificate(("127.0.0.1", cellgate.webhook_ports[0]))


async def _until_served(plane: ControlPlane, cellgate: Installation, secret: str) -> None:
    wanted = base64.b64decode(secret).decode()

    async def is_served() -> bool:
        return (await asyncio.to_thread(_served, cellgate)).strip() == wanted.strip()

    await poll_until(is_served, deadline_seconds=20, explain=lambda: "still the old certificate")


async def test_the_webhook_serves_what_is_mounted(cellgate: Installation, load: Load) -> None:
    await load.create(is_managed=True)
    assert load.failures == []
    assert "" not in load.decided.values()


async def test_a_renewed_certificate_fails_no_call(
    plane: ControlPlane, cellgate: Installation, manager: CertManager, load: Load
) -> None:
    creating = asyncio.create_task(load.run(160, rate=20))
    secret = await manager.issue(_WEBHOOK)
    await mount(plane, _WEBHOOK, plane.directory / "webhook-certs")
    await _until_served(plane, cellgate, secret["data"]["tls.crt"])
    await creating
    assert load.failures == []
    assert load.counted["created"] == 160


async def test_manifests_applied_again_leave_the_trust_alone(
    plane: ControlPlane, cellgate: Installation, load: Load
) -> None:
    await cellgate.apply()
    await load.create(is_managed=True)
    assert load.failures == []


async def test_another_ca_is_followed(
    plane: ControlPlane, cellgate: Installation, manager: CertManager, load: Load
) -> None:
    """It does not overlap with the old one: calls fail until all have heard of it."""
    before = await plane.api.get(f"{GROUP}/{KINDS[0]}/cellgate")
    manager.renew_ca()
    secret = await manager.issue(_WEBHOOK)
    await mount(plane, _WEBHOOK, plane.directory / "webhook-certs")
    await manager.inject()
    await _until_served(plane, cellgate, secret["data"]["tls.crt"])
    after = await plane.api.get(f"{GROUP}/{KINDS[0]}/cellgate")
    assert after["webhooks"][0]["clientConfig"] != before["webhooks"][0]["clientConfig"]
    await load.create(is_managed=True)
    assert load.counted["created"] == 1
