"""Cellgate as an admin installs it: our manifests applied by kubectl, our programs beside them.

The services and their kube-scheduler run as processes with the tokens of their own service
accounts, so that a permission that the manifests lack fails a test. Only what a Service would do is
different: the API server and kube-scheduler are given loopback addresses, and processes stand for
the pods of our Deployments. With `serves_tls` the extender serves as it does in a cluster; without,
as beside a kube-scheduler in the same pod.
"""

import asyncio
import os
import shutil
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from certs.clients import SCHEDULER
from certs.store import CertificateStore
from extender.settings import service_hosts
from kube.api.webhook_configurations import GROUP, KINDS, NAME
from state.embedded import EmbeddedPostgres
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until

PROGRAM = Path(sys.executable).with_name("cellgate")
MANIFESTS = Path(__file__).parents[3] / "manifests"
NAMESPACE = "cellgate-system"
OWN_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENTS = ("cellgate-webhook", "cellgate-extender", "cellgate-scheduler")
CERTS_SECRET = "cellgate-certs"
_CONFIGURATIONS = tuple(f"{GROUP}/{kind}/{NAME}" for kind in KINDS)


class Installation:
    """One Cellgate on one control plane."""

    scheduler: ChildProcess

    def __init__(
        self,
        control_plane: ControlPlane,
        http: aiohttp.ClientSession,
        *,
        database_url: str,
        extenders: int = 1,
        webhooks: int = 1,
        serves_tls: bool = False,
        manifests: str = "base",
        components: Sequence[str] = (),
        webhook_flags: Sequence[str] = (),
        extender_flags: Sequence[str] = (),
        webhook_certs: Path | None = None,
    ) -> None:
        """`manifests` is the base or an overlay, `components` are folders of our components;
        `webhook_certs` stands for a mounted Secret."""
        self._plane = control_plane
        self._http = http
        self.database_url = database_url
        self._serves_tls = serves_tls
        self.manifests = manifests
        self._components = components
        self._webhook_certs = (
            ("--certs-secret", CERTS_SECRET)
            if webhook_certs is None
            else ("--certs", str(webhook_certs))
        )
        # The only replica need not wait until its callers have found another one.
        self._webhook_flags = (
            *webhook_flags,
            *(("--linger-seconds", "0") if webhooks == 1 else ()),
            *(("--gentle-reclaim",) if "gentle-reclaim" in components else ()),
        )
        self._extender_flags = extender_flags
        self._certificates = control_plane.directory / "certs"
        self._mounted = control_plane.directory / "mounted-certs"
        self.scheduler_port, *ports = free_ports(1 + extenders + webhooks)
        self.extender_ports, self.webhook_ports = ports[:extenders], ports[extenders:]
        self.extenders: dict[int, ChildProcess] = {}
        self.webhooks: dict[int, ChildProcess] = {}
        self.api_server_asks = self.webhook_port_url(0)
        """Where the API server asks: the webhook, or what stands for its Service."""
        self.scheduler_asks = self.extender_url
        """Where kube-scheduler asks: the extender, or what stands for the leader's Service."""

    @property
    def webhook(self) -> ChildProcess:
        """The first webhook."""
        return self.webhooks[0]

    def webhook_port_url(self, replica: int) -> str:
        """Where a webhook answers."""
        return f"https://127.0.0.1:{self.webhook_ports[replica]}"

    @property
    def extender(self) -> ChildProcess:
        """The first extender."""
        return self.extenders[0]

    @property
    def extender_url(self) -> str:
        """Where the first extender answers."""
        return self.url_of(0)

    def url_of(self, replica: int) -> str:
        """Where an extender answers."""
        scheme = "https" if self._serves_tls else "http"
        return f"{scheme}://127.0.0.1:{self.extender_ports[replica]}"

    def trust(self, *, client: str | None = None) -> ssl.SSLContext:
        """What a caller verifies an extender with; `client` is whose certificate it shows."""
        context = ssl.create_default_context(cafile=self._certificates / "ca.crt")
        if client is not None:
            context.load_cert_chain(*self.paths_of(client))
        return context

    def paths_of(self, name: str) -> tuple[Path, Path]:
        """Where the certificate and the key of that name are."""
        return CertificateStore(self._certificates).paths_of(name)

    async def install(self) -> None:
        """Apply the manifests, start everything, and wait until it is ready."""
        hosts = ("127.0.0.1",)
        CertificateStore(self._certificates).ensure(hosts=hosts, now=datetime.now(UTC))
        if self._serves_tls:
            self.mount_certificates()
        await self.apply()
        await self._plane.kubectl("apply", "-k", str(MANIFESTS / "examples"))
        webhooks = map(self.start_webhook, range(len(self.webhook_ports)))
        await asyncio.gather(self._start_extenders(), *webhooks)
        await self.until_trusted()
        self.scheduler = self._plane.start_scheduler(
            await self._scheduler_configuration(),
            f"--secure-port={self.scheduler_port}",
            "--bind-address=127.0.0.1",
            name="cellgate-scheduler",
            kubeconfig=await self._plane.service_account_kubeconfig(
                NAMESPACE, "cellgate-scheduler"
            ),
        )

    async def apply(self, *flags: str) -> None:
        """Apply the manifests, for the first time or again."""
        await self._plane.kubectl("apply", "-k", str(self._write_overlay()), *flags)

    def mount_certificates(self) -> None:
        """Make certificates, and give the extender what a mounted Secret would hold."""
        store = CertificateStore(self._certificates, serving="extender")
        hosts = service_hosts(NAMESPACE)
        store.ensure(hosts=hosts, clients=[SCHEDULER], now=datetime.now(UTC))
        self._mounted.mkdir(exist_ok=True)
        for path in (store.ca_path, *store.serving_paths):
            shutil.copy(path, self._mounted)

    async def start_webhook(self, replica: int = 0) -> None:
        """Start a webhook as its service account, and wait until it is ready."""
        address = f"127.0.0.1:{self.webhook_ports[replica]}"
        spool = self._plane.directory / f"webhook-spool-{replica}"
        flags = (*self._webhook_certs, "--spool-dir", str(spool), *self._webhook_flags)
        self.webhooks[replica] = await self._start("webhook", "--listen", address, *flags)
        await self.wait_ready(self.webhook_port_url(replica))

    async def until_trusted(self) -> None:
        """Wait until the API server trusts the CA that the leading webhook has published."""

        async def is_trusted() -> bool:
            return all([await self._has_bundle(path) for path in _CONFIGURATIONS])

        await poll_until(is_trusted, deadline_seconds=30, explain=lambda: "no caBundle")

    async def _has_bundle(self, path: str) -> bool:
        hooks = (await self._plane.api.get(path))["webhooks"]
        return all(hook["clientConfig"].get("caBundle") for hook in hooks)

    async def _start_extenders(self) -> None:
        for replica in range(len(self.extender_ports)):  # the first one leads
            await self.start_extender(replica)

    async def start_extender(self, replica: int = 0) -> None:
        """Start an extender as its service account, and wait until it is ready."""
        address = f"127.0.0.1:{self.extender_ports[replica]}"
        tls = ["--tls", "--certs", str(self._mounted)] if self._serves_tls else []
        gentle = ["--gentle-reclaim"] if "gentle-reclaim" in self._components else []
        spool = str(self._plane.directory / f"extender-spool-{replica}")
        own = ("--pod-name", await self._stand_in(replica), "--spool-dir", spool)
        flags = ("--listen", address, *own, *tls, *gentle, *self._extender_flags)
        self.extenders[replica] = await self._start("extender", *flags)
        await self.wait_ready(self.url_of(replica))

    async def _stand_in(self, replica: int) -> str:
        """A pod for an extender to write on, as it writes on its own; it never runs."""
        name = f"cellgate-extender-{replica}"
        deployment, *_ = yaml.safe_load_all((MANIFESTS / "base" / "extender.yaml").read_text())
        spec = {**deployment["spec"]["template"]["spec"], "schedulerName": "none"}
        if not await self._plane.api.exists(f"{OWN_PODS}/{name}"):
            await self._plane.api.create(OWN_PODS, {"metadata": {"name": name}, "spec": spec})
        return name

    async def leader(self) -> int | None:
        """Which extender leads, if one does."""
        for replica in self.extenders:
            try:
                patience = aiohttp.ClientTimeout(total=0.5)  # one that is paused never answers
                url = f"{self.url_of(replica)}/leader"
                async with self._http.get(url, timeout=patience, ssl=False) as answer:
                    if answer.status == 200:
                        return replica
            except (aiohttp.ClientError, TimeoutError):
                continue
        return None

    async def webhook_requests(self) -> float:
        """How often the API server asked about a pod."""
        wanted = 'cellgate_http_requests_total{route="/mutate/pods"'
        found = [await self.webhook_metric(replica, wanted) for replica in self.webhooks]
        return sum(found)

    async def webhook_metric(self, replica: int, start: str) -> float:
        """The sum of a webhook's metrics whose lines start so."""
        return await self._metric(self.webhook_port_url(replica), start)

    async def extender_metric(self, start: str) -> float:
        """The sum of the first extender's metrics whose lines start so."""
        return await self._metric(self.extender_url, start)

    async def _metric(self, url: str, start: str) -> float:
        async with self._http.get(f"{url}/metrics", ssl=False) as answer:
            lines = (await answer.text()).splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(start))

    async def waiting(self) -> list[dict[str, Any]]:
        """The gangs and pods that wait."""
        return await self._look("/v1/waiting")

    async def decisions(self, subject: str) -> list[dict[str, Any]]:
        """What was decided about a gang or a pod, the newest first."""
        return await self._look(f"/v1/decisions?subject={subject}")

    async def nodes(self) -> list[dict[str, Any]]:
        """The nodes as the extender sees them, with who has their leaf cells."""
        return await self._look("/v1/nodes")

    async def _look(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.inspect(path))["items"]
        return found

    @property
    def admin(self) -> dict[str, str]:
        """What the admin's requests to an extender carry."""
        return {"Authorization": f"Bearer {self._plane.token()}"}

    async def inspect(self, path: str) -> dict[str, Any]:
        """Ask the leader, as the admin, where the Service leads to it."""
        url = self.scheduler_asks + path
        async with self._http.get(url, headers=self.admin, ssl=self.trust()) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found

    async def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post to the leader, as the admin."""
        url = self.scheduler_asks + path
        post = self._http.post(url, json=body, headers=self.admin, ssl=self.trust())
        async with post as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    async def wait_ready(self, url: str) -> None:
        """Wait until a service says that it is ready."""

        async def is_ready() -> bool:
            try:
                async with self._http.get(f"{url}/readyz", ssl=False) as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectionError:
                return False

        await poll_until(is_ready, deadline_seconds=30, explain=lambda: f"{url} is not ready")

    async def _start(self, service: str, *flags: str) -> ChildProcess:
        account = f"cellgate-{service}"
        kubeconfig = await self._plane.service_account_kubeconfig(NAMESPACE, account)
        common = ["--kubeconfig", str(kubeconfig), "--database-url", self.database_url]
        return self._plane.spawn(f"cellgate-{service}", [str(PROGRAM), service, *common, *flags])

    def _write_overlay(self) -> Path:
        """An overlay of our base, as an admin would write one for webhooks outside the cluster."""
        overlay = self._plane.directory / "overlay"
        overlay.mkdir(exist_ok=True)

        def from_here(path: Path) -> str:
            return os.path.relpath(path, overlay.resolve())

        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [from_here(MANIFESTS / self.manifests)],
            "components": [from_here(MANIFESTS / "components" / it) for it in self._components],
            "replicas": [{"name": name, "count": 0} for name in DEPLOYMENTS],
            "patches": [
                self._client_config(configuration) for configuration in self._configurations()
            ],
        }
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        return overlay

    def _configurations(self) -> list[dict[str, Any]]:
        text = (MANIFESTS / "base" / "webhooks.yaml").read_text()
        return list(yaml.safe_load_all(text))

    def _client_config(self, configuration: dict[str, Any]) -> dict[str, Any]:
        """Send what would go to our Service to the process that plays it."""
        steps = []
        for place, webhook in enumerate(configuration["webhooks"]):
            path = webhook["clientConfig"]["service"]["path"]
            value = {"url": f"{self.api_server_asks}{path}"}
            steps.append(
                {"op": "replace", "path": f"/webhooks/{place}/clientConfig", "value": value}
            )
        return {"target": {"kind": configuration["kind"]}, "patch": yaml.safe_dump(steps)}

    async def _scheduler_configuration(self) -> dict[str, Any]:
        """The configuration that our manifests put into the cluster, for this extender."""
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/cellgate-scheduler"
        stored = await self._plane.api.get(path)
        configuration: dict[str, Any] = yaml.safe_load(stored["data"]["scheduler.yaml"])
        certificate, key = self.paths_of(SCHEDULER)
        paths = {"caFile": self._certificates / "ca.crt", "certFile": certificate, "keyFile": key}
        for extender in configuration["extenders"]:
            extender["urlPrefix"] = f"{self.scheduler_asks}/v1/extender"
            extender["tlsConfig"] = {name: str(path) for name, path in paths.items()}
            if not self._serves_tls:
                del extender["tlsConfig"], extender["enableHTTPS"]
        return configuration


@asynccontextmanager
async def prepared(plane: ControlPlane, **how: Any) -> AsyncIterator[Installation]:
    """Cellgate with a database of its own, to be installed; `how` as of an `Installation`."""
    async with (
        EmbeddedPostgres(plane.directory / "database") as database,
        aiohttp.ClientSession() as http,
    ):
        installation = Installation(plane, http, database_url=database.url, **how)
        yield installation
        for process in (*installation.extenders.values(), *installation.webhooks.values()):
            await process.stop()  # while they can still write their records


@asynccontextmanager
async def installed(plane: ControlPlane, **how: Any) -> AsyncIterator[Installation]:
    """Cellgate with a database of its own, ready; `how` as of an `Installation`."""
    async with prepared(plane, **how) as installation:
        await installation.install()
        yield installation
