"""Who may call an extender that serves TLS, beside a simulated cluster."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from certs.clients import SCHEDULER
from certs.issuance import KeyPair, issue_ca, issue_client, issue_serving
from certs.serving_certificates import ServingCertificates
from certs.store import CertificateStore
from extender.app import run_extender
from extender.inspection.access import AccessGuard
from extender.inspection.tokens import TokenCheck
from extender.settings import ExtenderSettings
from kube.api.client import KubeClient, KubeError, connect
from service.settings import Address
from simulation.cluster import SimulatedCluster
from simulation.objects.identity import User
from state.log.log import DecisionLog
from tests.support.twins.log import MemoryDecisions

FILTER = "/v1/extender/filter"
POD = {"metadata": {"name": "x", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
QUESTION = {"Pod": POD, "NodeNames": ["node-00"]}


class Door:
    """The extender, as strangers, people and kube-scheduler find it."""

    def __init__(self, url: str, certificates: Path, cluster: SimulatedCluster) -> None:
        self._url = url
        self._directory = certificates
        self._cluster = cluster
        store = CertificateStore(certificates)
        self.ca = KeyPair(
            certificate=store.ca_path.read_bytes(), key=store.paths_of("ca")[1].read_bytes()
        )

    def trust(self, client: KeyPair | None = None) -> ssl.SSLContext:
        """What a caller verifies us with, and shows us."""
        context = ssl.create_default_context(cafile=self._directory / "ca.crt")
        if client is not None:
            certificate, key = self._directory / "shown.crt", self._directory / "shown.key"
            certificate.write_bytes(client.certificate)
            key.write_bytes(client.key)
            context.load_cert_chain(certificate, key)
        return context

    def token(self, name: str, *groups: str) -> dict[str, str]:
        """The header of a user."""
        token = self._cluster.tokens.issue(User(name=name, groups=groups))
        return {"Authorization": f"Bearer {token}"}

    async def knock(
        self,
        path: str | URL,
        *,
        body: object = None,
        client: KeyPair | None = None,
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
    ) -> tuple[int, Any]:
        """Ask once: the status, and the JSON or the text."""
        connector = aiohttp.TCPConnector(ssl=self.trust(client))
        async with aiohttp.ClientSession(connector=connector) as http:
            method = "GET" if body is None else "POST"
            url = URL(f"{self._url}{path}", encoded=True)
            async with http.request(method, url, json=body, headers=headers) as answer:
                is_json = answer.content_type == "application/json"
                return answer.status, await (answer.json() if is_json else answer.text())

    async def knock_raw(self, path: bytes, headers: dict[str, str]) -> int:
        """Ask with a path as no client would write it: the status."""
        port = URL(self._url).port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.trust())
        lines = [f"{key}: {value}".encode() for key, value in headers.items()]
        writer.write(b"\r\n".join([b"GET " + path + b" HTTP/1.1", b"Host: x", *lines, b"", b""]))
        status = int((await reader.readline()).split()[1])
        writer.close()
        await writer.wait_closed()
        return status


@dataclass
class TappedClient:
    """The way to the API server: counts the reviews, and fails them when told to."""

    client: KubeClient
    reviews: int = 0
    is_cut: bool = False

    def tap(self) -> None:
        original = self.client.request

        async def request(method: str, path: str, **more: Any) -> Any:
            if path.endswith("reviews"):
                self.reviews += 1
                if self.is_cut:
                    raise KubeError(f"{method} {path}: connection refused")
            return await original(method, path, **more)

        self.client.request = request  # type: ignore[method-assign] # that is what a tap is


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimulatedCluster]:
    cluster = SimulatedCluster(nodes=2, racks=1)
    await cluster.serve()
    cluster.save_kubeconfig(tmp_path / "kubeconfig")
    yield cluster
    await cluster.close()


@pytest.fixture
async def wire(cluster: SimulatedCluster, tmp_path: Path) -> AsyncIterator[TappedClient]:
    async with connect(str(tmp_path / "kubeconfig")) as client:
        wire = TappedClient(client)
        wire.tap()
        yield wire


@pytest.fixture
async def door(
    wire: TappedClient, cluster: SimulatedCluster, tmp_path: Path
) -> AsyncIterator[Door]:
    settings = ExtenderSettings(
        address=Address(host="127.0.0.1", port=0), wants_tls=True, certificates=tmp_path / "certs"
    )
    log = DecisionLog(MemoryDecisions())
    async with run_extender(settings, client=wire.client, log=log) as extender:
        extender.supervisor.start("decision log", log.run())
        async with asyncio.timeout(30):
            while not extender.health.is_ready:
                await asyncio.sleep(0.01)
        yield Door(extender.url, tmp_path / "certs", cluster)


def _now() -> datetime:
    return datetime.now(UTC)


async def test_kube_scheduler_calls_verbs_with_the_certificate_that_is_made_for_it(
    door: Door, tmp_path: Path
) -> None:
    certificate, key = CertificateStore(tmp_path / "certs").paths_of(SCHEDULER)
    scheduler = KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes())

    status, answer = await door.knock(FILTER, body=QUESTION, client=scheduler)

    assert (status, answer["NodeNames"]) == (200, ["node-00"])
    assert (await door.knock("/v1/gangs", client=scheduler))[0] == 200


async def test_probes_need_no_credentials(door: Door, wire: TappedClient) -> None:
    for path in ("/healthz", "/readyz", "/leader"):
        assert (await door.knock(path))[0] == 200
    assert wire.reviews == 0


async def test_without_a_certificate_no_verb_is_answered(door: Door, wire: TappedClient) -> None:
    why = "verbs need the client certificate of cellgate-scheduler; tokens are not accepted"
    admin = door.token("root", "system:masters")
    for verb in ("filter", "prioritize", "preempt", "bind"):
        for headers in ({}, admin):
            answer = await door.knock(f"/v1/extender/{verb}", body=QUESTION, headers=headers)
            assert answer == (401, {"error": why})
    assert wire.reviews == 0


async def test_another_client_of_our_ca_may_look_and_not_touch(door: Door) -> None:
    other = issue_client(door.ca, name="prometheus", now=_now())

    assert await door.knock(FILTER, body=QUESTION, client=other) == (
        403,
        {"error": "prometheus may not call verbs; only cellgate-scheduler may"},
    )
    assert (await door.knock("/metrics", client=other))[0] == 200


async def test_a_certificate_that_is_no_good_ends_the_handshake(door: Door) -> None:
    now = _now()
    for shown in (
        issue_serving(door.ca, hosts=["localhost"], now=now),
        issue_client(door.ca, name=SCHEDULER, now=now - timedelta(days=366)),
        issue_client(door.ca, name=SCHEDULER, now=now + timedelta(days=1)),
        issue_client(issue_ca(now=now), name=SCHEDULER, now=now),
    ):
        with pytest.raises(aiohttp.ClientError):
            await door.knock("/healthz", client=shown)
    assert (await door.knock("/healthz"))[0] == 200


async def test_a_certificate_that_expires_on_a_kept_connection_is_not_taken_any_more(
    tmp_path: Path,
) -> None:
    store = CertificateStore(tmp_path, serving="extender")
    certificates = ServingCertificates(
        store,
        hosts=["127.0.0.1"],
        clients=[SCHEDULER],
        utc_now=_now,
        client_ca=store.ca_path,
    )
    later = AccessGuard(_nobody(), utc_now=lambda: _now() + timedelta(days=366))
    app = web.Application(middlewares=[later.middleware])
    server = TestServer(app, scheme="https")
    await server.start_server(ssl=certificates.context)
    trust = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    trust.load_cert_chain(*CertificateStore(tmp_path).paths_of(SCHEDULER))
    async with aiohttp.ClientSession() as http, http.get(server.make_url("/"), ssl=trust) as said:
        assert said.status == 401
        assert await said.json() == {
            "error": "the client certificate of cellgate-scheduler has expired"
        }
        assert said.headers["Connection"] == "close"
    await server.close()


def _nobody() -> TokenCheck:
    """A check that must not be asked."""
    return cast(TokenCheck, None)


async def test_people_look_with_their_token_if_a_role_allows_it(
    door: Door, wire: TappedClient
) -> None:
    admin, alice = door.token("root", "system:masters"), door.token("alice", "team-a")

    assert (await door.knock("/v1/gangs", headers=admin))[0] == 200
    assert (await door.knock("/metrics", headers=admin))[0] == 200
    assert (await door.knock("/v1/simulate", body={}, headers=admin))[0] == 400
    assert await door.knock("/v1/gangs", headers=alice) == (
        403,
        {
            "error": "alice may not get /v1/gangs: "
            "bind a ClusterRole that allows it, such as cellgate-inspector"
        },
    )
    asked = wire.reviews
    assert (await door.knock("/v1/gangs", headers=admin))[0] == 200
    assert (await door.knock("/v1/gangs", headers=alice))[0] == 403
    assert wire.reviews == asked


async def test_every_user_reads_the_own_limits_and_no_others(door: Door) -> None:
    alice = door.token("alice", "team-a")
    for path in ("/v1/limits?user=bob", "/v1/limits?groups=team-b"):
        status, said = await door.knock(path, headers=alice)
        assert (status, said) == (
            403,
            {"error": "alice may read only their own limits; leave user and groups out"},
        )
    for path in ("/v1/limits", "/v1/limits?user=alice"):
        assert (await door.knock(path, headers=alice))[0] == 503, "this extender has no ledger"


_NO_TOKEN = {"error": "send a Kubernetes token: Authorization: Bearer TOKEN"}
_BAD_TOKEN = {"error": "the API server does not know this token, or it has expired"}


async def test_strangers_see_nothing_and_are_told_what_to_do(door: Door) -> None:
    for path in ("/", "/openapi.json", "/metrics", "/v1/gangs", "/v1/inspect/clusterstatus", "/x"):
        assert await door.knock(path) == (401, _NO_TOKEN)


async def test_garbage_is_nobodys_token(door: Door, wire: TappedClient) -> None:
    for header, why in (
        ("", _NO_TOKEN),
        ("Bearer", _NO_TOKEN),
        ("Bearer  ", _NO_TOKEN),
        ("Basic cm9vdDpyb290", _NO_TOKEN),
        ("Bearer two words", _NO_TOKEN),
        ("Bearer t\u00f6ken", _NO_TOKEN),
        ("Bearer nobody", _BAD_TOKEN),
        ("bearer " + "x" * 8000, _BAD_TOKEN),
        ('Bearer {"json":[]}', _BAD_TOKEN),
    ):
        assert await door.knock("/v1/gangs", headers={"Authorization": header}) == (401, why)
    assert wire.reviews == 3


async def test_two_tokens_are_nobodys_and_an_endless_one_is_not_read(
    door: Door, wire: TappedClient
) -> None:
    admin = door.token("root", "system:masters")
    two = [*admin.items(), ("Authorization", "Bearer other")]
    assert await door.knock("/v1/gangs", headers=two) == (401, _NO_TOKEN)
    endless = {"Authorization": "Bearer " + "x" * 100_000}
    assert (await door.knock("/v1/gangs", headers=endless))[0] == 400
    assert wire.reviews == 0


async def test_no_spelling_of_a_path_leads_around_the_check(door: Door) -> None:
    spellings = ("//v1/extender/filter", "/v1/extender%2Ffilter", "/healthz/../v1/extender/filter")
    admin = door.token("root", "system:masters")
    for path in spellings:
        url = URL(path, encoded=True)
        assert (await door.knock(url, body=QUESTION))[0] == 401
        assert (await door.knock(url, body=QUESTION, headers=admin))[0] in (401, 404)
    for raw in (b"/v1/\xff\xfe", b"/v1/%ff%00", b"/v1/gangs/%ed%a0%80/x"):
        assert await door.knock_raw(raw, admin) in (400, 404)
        assert await door.knock_raw(raw, {}) in (400, 401)


async def test_when_the_api_server_does_not_say_nobody_new_gets_in(
    door: Door, wire: TappedClient
) -> None:
    known, new = door.token("root", "system:masters"), door.token("toor", "system:masters")
    assert (await door.knock("/v1/gangs", headers=known))[0] == 200

    wire.is_cut = True
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    why = f"cannot check the token: POST {path}: connection refused"
    assert await door.knock("/v1/gangs", headers=new) == (503, {"error": why})
    assert (await door.knock("/v1/gangs", headers=known))[0] == 200
    other = issue_client(door.ca, name="prometheus", now=_now())
    assert (await door.knock("/v1/gangs", client=other))[0] == 200

    wire.is_cut = False
    assert (await door.knock("/v1/gangs", headers=new))[0] == 200
