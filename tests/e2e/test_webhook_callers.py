"""Who may call the webhook, and who may change what it wrote."""

import secrets
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
import yaml

from certs.issuance import KeyPair, issue_ca, issue_client
from kube import marks
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import ControlPlane, ControlPlaneOptions
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import Installation, installed
from tests.support.installed.pod_load import a_load_pod

_PODS = "/api/v1/namespaces/default/pods"


@dataclass(frozen=True, slots=True)
class Certified:
    """The files by which an API server proves to webhooks who it is."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def configuration(self) -> Path:
        return self.folder / "admission.yaml"

    def pair(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def write(self) -> None:
        """Make a CA, the API server's certificate, one of another name, and one of another CA."""
        now = datetime.now(UTC)
        ca, other = issue_ca(now=now), issue_ca(now=now)
        self.ca.write_bytes(ca.certificate)
        self._save("apiserver", issue_client(ca, name="kube-apiserver", now=now))
        self._save("kubelet", issue_client(ca, name="kubelet", now=now))
        self._save("stranger", issue_client(other, name="kube-apiserver", now=now))
        (self.folder / "other.crt").write_bytes(other.certificate)
        kubeconfig = self.folder / "webhooks.kubeconfig"
        certificate, key = map(str, self.pair("apiserver"))
        user = {"client-certificate": certificate, "client-key": key}
        kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "users": [{"name": "*", "user": user}],
                }
            )
        )
        plugins = [
            {
                "name": name,
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "WebhookAdmissionConfiguration",
                    "kubeConfigFile": str(kubeconfig),
                },
            }
            for name in ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
        ]
        document = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": plugins,
        }
        self.configuration.write_text(yaml.safe_dump(document))

    def _save(self, name: str, pair: KeyPair) -> None:
        certificate, key = self.pair(name)
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    certified = Certified(tmp_path_factory.mktemp("certified"))
    certified.write()
    return certified


@pytest.fixture(scope="module")
def plane_options(certified: Certified) -> ControlPlaneOptions:
    """The API server shows webhooks a certificate."""
    flag = f"--admission-control-config-file={certified.configuration}"
    return ControlPlaneOptions(apiserver_flags=(flag,))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cellgate(plane: ControlPlane, certified: Certified) -> AsyncIterator[Installation]:
    flags = ("--client-ca", str(certified.ca), "--client-names", "kube-apiserver,other")
    async with installed(plane, webhook_flags=flags) as installation:
        yield installation


async def _create(plane: ControlPlane) -> str:
    name = f"pod-{secrets.token_hex(4)}"
    await plane.api_as("alice").create(_PODS, a_load_pod(name, is_managed=True))
    return f"{_PODS}/{name}"


async def _forge(cellgate: Installation, tls: ssl.SSLContext) -> int:
    """Send a review as a caller that is not the API server; the status of the answer."""
    request = {"uid": "x", "operation": "CREATE", "object": a_load_pod("x", is_managed=True)}
    url = f"{cellgate.webhook_port_url(0)}/mutate/pods"
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, json={"request": request}, ssl=tls) as answer,
    ):
        return answer.status


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def test_only_the_api_server_gets_a_review(
    plane: ControlPlane, cellgate: Installation, certified: Certified
) -> None:
    path = await _create(plane)
    stored = await plane.api.get(path)
    assert marks.DECISION_ANNOTATION in stored["metadata"]["annotations"]
    assert await _forge(cellgate, _trusting()) == 401
    stranger = _trusting()
    stranger.load_cert_chain(*certified.pair("stranger"))
    with pytest.raises(aiohttp.ClientError):
        await _forge(cellgate, stranger)
    misnamed = _trusting()
    misnamed.load_cert_chain(*certified.pair("kubelet"))
    assert await _forge(cellgate, misnamed) == 401


async def test_another_ca_of_the_api_server_is_believed_without_a_restart(
    plane: ControlPlane, cellgate: Installation, certified: Certified
) -> None:
    with certified.ca.open("ab") as file:
        file.write((certified.folder / "other.crt").read_bytes())
    successor = _trusting()
    successor.load_cert_chain(*certified.pair("stranger"))

    async def is_believed() -> bool:
        try:
            return await _forge(cellgate, successor) != 401
        except aiohttp.ClientError:
            return False

    await poll_until(is_believed, deadline_seconds=20, explain=lambda: "the old CA only")
    await _create(plane)


@pytest.mark.parametrize("part", ["", "/status"], ids=["pod", "status"])
async def test_nobody_but_us_writes_where_a_pod_is(
    plane: ControlPlane, cellgate: Installation, part: str
) -> None:
    """Not even who may do anything else to pods, as an operator of others may."""
    await plane.kubectl(
        "create", "clusterrolebinding", f"all-{part[1:]}", "--clusterrole=cluster-admin",
        "--user=bob",
    )  # fmt: skip
    path = await _create(plane)
    for key in (marks.PLACEMENT_ANNOTATION, marks.UNCHARGED_ANNOTATION):
        body = {"metadata": {"annotations": {key: "forged"}}}
        with pytest.raises(ApiError, match="only Cellgate may change it"):
            await plane.api_as("bob").patch(path + part, body)
    free = {"metadata": {"annotations": {"example.org/note": "mine"}}}
    await plane.api_as("bob").patch(path + part, free)


async def test_nobody_but_us_lifts_the_gate(plane: ControlPlane, cellgate: Installation) -> None:
    path = await _create(plane)
    lifted = {"spec": {"schedulingGates": None}}
    with pytest.raises(ApiError, match=f"only Cellgate may lift {marks.QUEUED_GATE}"):
        await plane.api_as("alice").patch(path, lifted)
