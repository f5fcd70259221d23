"""Certificates in a Secret: created, shared, renewed and published by the leader."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certs.issuance import issue_ca
from certs.rotation import Certificates, renew
from kube.api.client import MERGE_PATCH, KubeClient, Object
from kube.api.leadership import Leadership, LeadershipSettings
from kube.api.webhook_configurations import GROUP, KINDS
from service.clock import Clock
from service.runner import RunningService
from service.settings import Address
from simulation.cluster import SimulatedCluster
from state.log.log import DecisionLog
from tests.support.services.simulated_cluster import connected
from tests.support.twins.ledger import MemoryLedger
from tests.support.twins.log import MemoryDecisions
from tests.support.twins.usage import MemoryUsage
from webhook.app import WebhookSettings, WebhookState, run_webhook
from webhook.certificates.renewer import CertificateRenewer
from webhook.certificates.shared_certificates import SharedCertificates

SECRETS = "/api/v1/namespaces/cellgate-system/secrets"
SECRET = f"{SECRETS}/cellgate-certs"
HOOKS = [
    {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:9/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "never", "expression": "false"}],
    }
    for name in ("one.cellgate.io", "two.cellgate.io")
]


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connected(SimulatedCluster(nodes=1), tmp_path) as client:
        for kind in KINDS:
            body = {"metadata": {"name": "cellgate"}, "webhooks": HOOKS}
            await client.request("POST", f"{GROUP}/{kind}", body=body)
        yield client


@asynccontextmanager
async def a_replica(client: KubeClient, name: str = "a") -> AsyncIterator[RunningService]:
    settings = WebhookSettings(
        address=Address(host="127.0.0.1", port=0),
        secret="cellgate-certs",
        identity=name,
        ca_overlap_seconds=2,
    )
    ledger = MemoryLedger()
    async with run_webhook(
        settings,
        client=client,
        state=WebhookState(
            log=DecisionLog(MemoryDecisions()), ledger=ledger, usage=MemoryUsage(ledger)
        ),
    ) as webhook:
        async with asyncio.timeout(30):
            while not webhook.health.is_ready:
                await asyncio.sleep(0.01)
        yield webhook


async def _bundles(client: KubeClient) -> set[bytes]:
    """Whom the API server believes, over all of our webhooks."""
    configurations = [await client.request("GET", f"{GROUP}/{kind}/cellgate") for kind in KINDS]
    return {
        base64.b64decode(hook["clientConfig"].get("caBundle", ""))
        for configuration in configurations
        for hook in configuration["webhooks"]
    }


async def _files(client: KubeClient, path: str = SECRET) -> dict[str, bytes]:
    data: Object = (await client.request("GET", path))["data"]
    return {name: base64.b64decode(content) for name, content in data.items()}


async def _is_trusted(client: KubeClient, replica: RunningService) -> bool:
    """Call a replica as each of our webhooks says, in new connections."""
    return all([await _believes(bundle, replica) for bundle in await _bundles(client)])


async def _believes(bundle: bytes, replica: RunningService) -> bool:
    trust = ssl.create_default_context(cadata=bundle.decode())
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"{replica.url}/healthz", ssl=trust) as answer,
        ):
            return answer.status == 200
    except aiohttp.ClientSSLError:
        return False


async def _until_published(client: KubeClient) -> None:
    async with asyncio.timeout(30):
        while await _bundles(client) != {(await _files(client))["ca.crt"]}:
            await asyncio.sleep(0.02)


async def test_replicas_share_certificates_and_the_api_server_trusts_them(
    client: KubeClient,
) -> None:
    async with a_replica(client) as one, a_replica(client, "b") as two:
        await _until_published(client)
        assert await _is_trusted(client, one)
        assert await _is_trusted(client, two)
        for name in ("cellgate-extender-certs", "cellgate-scheduler-certs"):
            async with asyncio.timeout(30):
                while not await _exists(client, f"{SECRETS}/{name}"):
                    await asyncio.sleep(0.02)
        copy = await _files(client, f"{SECRETS}/cellgate-extender-certs")
        assert set(copy) == {"ca.crt", "extender.crt", "extender.key"}


async def _exists(client: KubeClient, path: str) -> bool:
    collection, _, name = path.rpartition("/")
    listed = await client.request("GET", collection)
    return name in [one["metadata"]["name"] for one in listed["items"]]


async def test_a_new_ca_comes_without_one_untrusted_call(client: KubeClient) -> None:
    async with a_replica(client) as one, a_replica(client, "b") as two:
        await _until_published(client)
        before = await _files(client)
        notes = {"cellgate.io/renew": "ca", "example.org/note": "mine"}
        body = {"metadata": {"annotations": notes, "labels": {"of": "site"}}}
        await client.request("PATCH", SECRET, body=body, content_type=MERGE_PATCH)
        calls = 0
        async with asyncio.timeout(60):
            while (after := await _files(client))["ca.crt"].count(b"BEGIN") > 1 or (
                after["signing.crt"] == before["signing.crt"]
            ):
                for replica in (one, two):
                    assert await _is_trusted(client, replica)
                    calls += 1
        assert calls > 10
        assert before["ca.crt"] not in after["ca.crt"]
        kept = (await client.request("GET", SECRET))["metadata"]
        assert (kept["annotations"], kept["labels"]) == (
            {"example.org/note": "mine"},
            {"of": "site"},
        )
        assert await _is_trusted(client, one)


async def test_a_removed_bundle_or_secret_is_restored(client: KubeClient) -> None:
    async with a_replica(client) as one:
        await _until_published(client)
        before = await _files(client)
        for kind in KINDS:
            stored = await client.request("GET", f"{GROUP}/{kind}/cellgate")
            await client.request(
                "PUT", f"{GROUP}/{kind}/cellgate", body={**stored, "webhooks": HOOKS}
            )
        await _until_published(client)
        await client.request("DELETE", SECRET)
        async with asyncio.timeout(30):
            while not await _exists(client, SECRET):
                await asyncio.sleep(0.02)
        assert await _files(client) == before
        assert await _is_trusted(client, one)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


OTHER_KEY = _encoded(issue_ca(now=datetime.now(UTC)).key)


@pytest.mark.parametrize(
    "damage",
    [
        {"webhook.crt": _encoded(b"garbage"), "signing.crt": _encoded(b"garbage")},
        {"signing.key": None},
        {"ca.crt": ""},
        {"webhook.key": OTHER_KEY},
    ],
    ids=["garbage", "no key of the CA", "no trust", "another key"],
)
async def test_a_damaged_secret_changes_nothing_and_is_mended(
    client: KubeClient, damage: dict[str, str | None]
) -> None:
    async with a_replica(client) as one:
        await _until_published(client)
        before = await _files(client)
        await client.request("PATCH", SECRET, body={"data": damage}, content_type=MERGE_PATCH)
        async with asyncio.timeout(30):
            while await _files(client) != before:
                assert await _is_trusted(client, one)
        assert await _is_trusted(client, one)


async def test_a_certificate_of_an_unknown_algorithm_changes_nothing(client: KubeClient) -> None:
    """Of a damaged one that, too, can be wrong; all replicas hear of it at once."""
    curve, other = bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030105")
    async with a_replica(client) as one:
        await _until_published(client)
        before = await _files(client)
        _, *lines, _ = before["webhook.crt"].splitlines()
        der = base64.b64decode(b"".join(lines)).replace(curve, other)
        text = b"-----BEGIN CERTIFICATE-----\n%b-----END CERTIFICATE-----\n"
        damage = {"webhook.crt": _encoded(text % base64.encodebytes(der))}
        await client.request("PATCH", SECRET, body={"data": damage}, content_type=MERGE_PATCH)
        async with asyncio.timeout(30):
            while await _files(client) != before:
                assert await _is_trusted(client, one)
        assert one.health.is_ready


async def test_a_damaged_secret_that_no_replica_knows_is_created_anew(client: KubeClient) -> None:
    body = {"metadata": {"name": "cellgate-certs"}, "data": {"ca.crt": _encoded(b"garbage")}}
    await client.request("POST", SECRETS, body=body)
    async with a_replica(client) as one:
        await _until_published(client)
        assert await _is_trusted(client, one)


async def test_no_error_during_renewal_ends_a_replica(
    client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be the next one's, too, until none is left to answer."""
    mistakes = iter([TypeError("as of a library"), KeyError("as of an odd answer")])

    def renew_at_last(known: Certificates | None, **how: Any) -> Certificates:
        for mistake in mistakes:
            raise mistake
        return renew(known, **how)

    monkeypatch.setattr("webhook.certificates.renewer.renew", renew_at_last)
    async with a_replica(client) as one:
        await _until_published(client)
        assert await _is_trusted(client, one)
        assert next(mistakes, None) is None


async def test_what_was_not_saved_is_not_published(client: KubeClient) -> None:
    """As by a replica that has just ceased to lead."""
    clock = Clock()
    term = LeadershipSettings(name="cellgate-webhook", namespace="cellgate-system", identity="a")
    leadership = Leadership(client, term, monotonic=clock.monotonic, utc_now=clock.now)
    renewer = CertificateRenewer(
        client,
        namespace="cellgate-system",
        secret="cellgate-certs",
        overlap=timedelta(seconds=2),
        leadership=leadership,
        shared=SharedCertificates(now=clock.now(), on_first=lambda: None),
        utc_now=clock.now,
    )
    await renewer.step()
    assert not await _exists(client, SECRET)
    assert await _bundles(client) == {b""}
