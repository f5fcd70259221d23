"""The simulated cluster of `cellgate run`, set up with the manifests for a real cluster."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import yaml

from kube.api.client import KubeClient, Object
from policy.errors import SettingsError
from service.health import Health
from service.settings import Address, cannot_listen
from service.tasks import Supervisor
from simulation.cluster import SYSTEM_NAMESPACE, SimulatedCluster
from simulation.objects.identity import User

_POLICIES = ("examples/classes.yaml", "examples/rules.yaml")
_WEBHOOKS = "base/webhooks.yaml"
_SERVICES = User(
    name=f"system:serviceaccount:{SYSTEM_NAMESPACE}:cellgate-extender",
    groups=("system:serviceaccounts",),
)
"""The services' account: what they delete is a preemption, and what an admin deletes is not."""
_REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


class Simulation:
    """A simulated cluster with a running API server."""

    def __init__(self, cluster: SimulatedCluster, *, kubeconfig: Path) -> None:
        self._cluster = cluster
        self.health = Health()
        self.kubeconfig = kubeconfig

    @property
    def url(self) -> str:
        """The URL of its API server."""
        return self._cluster.url

    async def call_webhook(self, client: KubeClient, url: str, *, ca: Path) -> None:
        """Register the webhook in the cluster, with the rules of the manifests."""
        bundle = base64.b64encode(await asyncio.to_thread(ca.read_bytes)).decode()
        for configuration in _load_manifest(_WEBHOOKS):
            for webhook in configuration["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": url + path, "caBundle": bundle}
            plural = configuration["kind"].lower() + "s"
            await client.request("POST", f"{_REGISTRATION}/{plural}", body=configuration)

    @asynccontextmanager
    async def at_work(self, *, extender_url: str) -> AsyncIterator[None]:
        """Run kube-scheduler, the kubelets and the users while the body runs.

        They use the services, so they end first: a pod that they delete is reviewed by the webhook.
        """
        verbs = f"{extender_url}/v1/extender"
        async with Supervisor(self.health) as supervisor:
            supervisor.start("simulated scheduler", self._cluster.run_scheduler(verbs))
            supervisor.start("simulated kubelets", self._cluster.run_kubelet())
            supervisor.start("simulated users", self._cluster.run_users())
            yield


@asynccontextmanager
async def run_simulation(address: Address, data: Path) -> AsyncIterator[Simulation]:
    """Serve a simulated cluster while the body runs."""
    if not address.is_loopback:
        raise SettingsError(
            f"{address.flag} {address} is not loopback: the simulated API server must not be "
            "reachable from other machines, since every caller is an administrator"
        )
    # A new seed each time: pods of different runs must have different UIDs in the log.
    cluster = SimulatedCluster(seed=secrets.randbits(32), policies=dict(_policies()))
    try:
        await cluster.serve(host=address.host, port=address.port)
    except OSError as exc:
        raise cannot_listen(address, exc) from exc
    try:
        kubeconfig = data / "simulated.kubeconfig"
        cluster.save_kubeconfig(kubeconfig, _SERVICES)
        yield Simulation(cluster, kubeconfig=kubeconfig)
    finally:
        await cluster.close()


def _policies() -> Iterator[tuple[str, str]]:
    """Yield kind and text of the example policies."""
    for path in _POLICIES:
        for obj in _load_manifest(path):
            if obj["kind"] == "ConfigMap":
                yield obj["metadata"]["labels"]["cellgate.io/policy"], obj["data"]["policy.yaml"]


def _load_manifest(path: str) -> list[Object]:
    text = files("manifests").joinpath(path).read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))
