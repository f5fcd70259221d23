"""An extender and its kube-scheduler beside a control plane, without webhook: HiveD's way."""

import io
from typing import Any

import aiohttp
import yaml

from kube import marks
from tests.controlplane.api import JsonObject
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ChildProcess
from tests.controlplane.waiting import poll_until
from tests.support.installed.installation import MANIFESTS, NAMESPACE, PROGRAM
from tests.support.kube.pods import PodBuilder, a_new_pod

CLASSES = {"prod": 100, "test": 10, "oppo": -1}


class ExtenderOnly:
    """An extender process with a cluster file, and a kube-scheduler that asks it."""

    extender: ChildProcess
    scheduler: ChildProcess

    def __init__(
        self, plane: ControlPlane, http: aiohttp.ClientSession, *, database_url: str
    ) -> None:
        self._plane = plane
        self._http = http
        self._database_url = database_url
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        self.cluster_file = plane.directory / "cluster.yaml"
        self.program: tuple[str, ...] = (str(PROGRAM),)

    @property
    def url(self) -> str:
        """Where the extender answers."""
        return f"http://{self._address}"

    async def start(self, cluster: JsonObject) -> None:
        """Make classes and namespace, and start both."""
        await self._plane.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for name, value in CLASSES.items():
            await self._plane.api.create(
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": name}, "value": value},
            )
        self.use_cluster(cluster)
        self.extender = self._plane.spawn(
            "extender",
            [
                *(*self.program, "extender", "--cluster", str(self.cluster_file)),
                *("--kubeconfig", str(self._plane.kubeconfig())),
                *("--database-url", self._database_url, "--listen", self._address),
            ],
        )
        await self.wait_ready()
        self.scheduler = self._plane.start_scheduler(self.configuration(), name="second-scheduler")

    def use_cluster(self, cluster: JsonObject) -> None:
        """Write the cluster document; a running extender follows it."""
        self.cluster_file.write_text(yaml.safe_dump(cluster))

    async def wait_ready(self) -> None:
        """Wait until the extender answers verbs."""

        async def is_ready() -> bool:
            try:
                return bool(await self.get("/readyz", as_text=True) == "ok\n")
            except aiohttp.ClientConnectionError:
                return False

        await poll_until(is_ready, deadline_seconds=60, explain=lambda: self.extender.tail())

    async def post(self, path: str, body: bytes) -> tuple[int, Any]:
        """Send something to the extender; status and answer."""
        async with self._http.post(self.url + path, data=io.BytesIO(body)) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str, *, as_text: bool = False) -> Any:
        """Ask the extender."""
        async with self._http.get(self.url + path) as answer:
            return await answer.text() if as_text else await answer.json()

    def configuration(self) -> JsonObject:
        """The configuration of our manifests, for this extender."""
        documents = yaml.safe_load_all((MANIFESTS / "base" / "scheduler.yaml").read_text())
        stored = next(one for one in documents if one["metadata"]["name"] == "cellgate-scheduler")
        configuration: JsonObject = yaml.safe_load(stored["data"]["scheduler.yaml"])
        configuration["leaderElection"] = {"leaderElect": False}
        for extender in configuration["extenders"]:
            del extender["enableHTTPS"], extender["tlsConfig"]  # as in one pod
            extender["urlPrefix"] = f"{self.url}/v1/extender"
        return configuration


def an_openpai_pod(
    name: str,
    *,
    vc: str,
    priority_class: str = "prod",
    leaves: int = 1,
    gang: tuple[str, int] | None = None,
    has_device: bool = False,
) -> PodBuilder:
    """A pod as OpenPAI makes it: HiveD's annotation and enable resource, and usually no device."""
    spec: dict[str, Any] = {
        "virtualCluster": vc,
        "priority": CLASSES[priority_class],
        "leafCellNumber": leaves,
    }
    if gang:
        members = [{"podNumber": gang[1], "leafCellNumber": leaves}]
        spec["affinityGroup"] = {"name": gang[0], "members": members}
    pod = a_new_pod(name).for_hived().with_hived_spec(yaml.safe_dump(spec))
    pod = pod.of_class(priority_class).with_spec(schedulerName=marks.SCHEDULER_NAME)
    return (pod.with_gpus(leaves) if has_device else pod).ending_at_once()
