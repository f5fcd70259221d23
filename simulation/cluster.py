"""A simulated cluster: nodes, classes, namespaces, policies, scheduler, kubelets and users.

It starts no tasks itself: the caller supervises the `run_…` coroutines, which run until they are
cancelled.
"""

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from simulation import users
from simulation.admission import priority
from simulation.api.server import ApiServer
from simulation.extender_calls import Extender, ExtenderConfig
from simulation.kubelet import Kubelet
from simulation.objects.fields import Object, format_time
from simulation.objects.identity import ADMIN, Tokens, User
from simulation.objects.resources import CONFIG_MAPS, NAMESPACES, NODES, PRIORITY_CLASSES, Resource
from simulation.objects.store import Store
from simulation.scheduler import Scheduler

SYSTEM_NAMESPACE = "cellgate-system"
LEAF_RESOURCE = "nvidia.com/gpu"
CLASSES = {"prod": 1000, "test": 100, "oppo": 0}


class SimulatedCluster:
    """A cluster of equal GPU nodes in racks, with an API server on loopback."""

    def __init__(
        self,
        *,
        nodes: int = 16,
        leaf_per_node: int = 8,
        racks: int = 4,
        leaf_type: str = "A100",
        seed: int = 0,
        policies: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`policies` are the texts of policy documents by kind, such as `rules`."""
        self.store = Store()
        self.tokens = Tokens()
        self.url = ""
        self._leaf_per_node, self._leaf_total = leaf_per_node, nodes * leaf_per_node
        self._seed, self._now = seed, now
        self._rng = random.Random(seed)  # noqa: S311 - names and uids of a simulation
        self._runner: web.AppRunner | None = None
        self._seed_namespaces()
        self._seed_classes()
        for number in range(nodes):
            rack = f"rack-{number * racks // nodes}"
            self._add(NODES, build_node(number, rack=rack, leaf_type=leaf_type, leaf=leaf_per_node))
        for kind, text in (policies or {}).items():
            self._add(CONFIG_MAPS, build_policy(kind, text))

    async def serve(self, *, host: str = "127.0.0.1", port: int = 0) -> str:
        """Start the API server and return its URL; OSError if the address cannot be used."""
        server = ApiServer(self.store, tokens=self.tokens, now=self._now, rng=self._rng)
        # With `handler_cancellation`, a watch ends when its client disconnects.
        self._runner = web.AppRunner(
            server.build_app(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError:
            await self.close()
            raise
        self.url = f"http://{host}:{self._runner.addresses[0][1]}"
        return self.url

    async def close(self) -> None:
        """End all watches and stop the API server."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, user: User = ADMIN) -> Object:
        """Return the kubeconfig of a user."""
        token = self.tokens.issue(user)
        context = {"cluster": "simulated", "user": user.name, "namespace": SYSTEM_NAMESPACE}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "simulated", "cluster": {"server": self.url}}],
            "users": [{"name": user.name, "user": {"token": token}}],
            "contexts": [{"name": "simulated", "context": context}],
            "current-context": "simulated",
        }

    def save_kubeconfig(self, path: Path, user: User = ADMIN) -> None:
        """Write the kubeconfig of a user to a file."""
        path.write_text(yaml.safe_dump(self.kubeconfig(user)), encoding="utf-8")

    async def run_scheduler(self, extender_url: str) -> None:
        """Run kube-scheduler with an extender; verbs are appended to `extender_url`."""
        settings = ExtenderConfig(url=extender_url)
        async with aiohttp.ClientSession() as session:
            await Scheduler(self.store, Extender(settings, session), now=self._now).run()

    async def run_kubelet(self) -> None:
        """Run all kubelets."""
        await Kubelet(self.store, now=self._now).run()

    async def run_users(self) -> None:
        """Run users that submit gangs; call `serve` first."""
        rng = random.Random(self._seed)  # noqa: S311 - the workload of a simulation
        gangs = users.plan_gangs(
            rng, leaf_per_node=self._leaf_per_node, leaf_total=self._leaf_total
        )
        async with aiohttp.ClientSession() as session:
            await users.Users(
                self.url,
                session,
                tokens=self.tokens,
                leaf_total=self._leaf_total,
                now=self._now,
            ).run(gangs)

    def _seed_namespaces(self) -> None:
        for name in ("default", "kube-system", SYSTEM_NAMESPACE):
            self._add_namespace(name, {})
        for vc in dict.fromkeys(user.vc for user in users.USERS):
            self._add_namespace(vc, {"cellgate.io/vc": vc})

    def _add_namespace(self, name: str, labels: dict[str, str]) -> None:
        metadata = {"name": name, "labels": {**labels, "kubernetes.io/metadata.name": name}}
        self._add(NAMESPACES, {"metadata": metadata, "status": {"phase": "Active"}})

    def _seed_classes(self) -> None:
        for name, value in {**priority.BUILT_IN, **CLASSES}.items():
            policy = "PreemptLowerPriority"
            body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            self._add(PRIORITY_CLASSES, body)

    def _add(self, resource: Resource, obj: Object) -> None:
        uid = f"simulated-{resource.plural}-{obj['metadata']['name']}"
        born = {"uid": uid, "creationTimestamp": format_time(self._now())}
        self.store.create(resource, {**obj, "metadata": {**obj["metadata"], **born}})


def build_node(number: int, *, rack: str, leaf_type: str, leaf: int) -> Object:
    """Build a ready node with its topology labels."""
    name = f"node-{number:02}"
    amounts = {LEAF_RESOURCE: str(leaf), "cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "metadata": {
            "name": name,
            "labels": {
                "node-role/gpu": "true",
                "topology.kubernetes.io/zone": "zone-0",
                "topology.kubernetes.io/rack": rack,
                "kubernetes.io/hostname": name,
                "nvidia.com/gpu.product": leaf_type,
            },
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def build_policy(kind: str, text: str) -> Object:
    """Build the ConfigMap of a policy document."""
    metadata = {
        "name": f"cellgate-{kind}",
        "namespace": SYSTEM_NAMESPACE,
        "labels": {"cellgate.io/policy": kind},
    }
    return {"metadata": metadata, "data": {"policy.yaml": text}}
