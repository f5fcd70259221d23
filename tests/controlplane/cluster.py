"""`ControlPlane`: a Kubernetes control plane that is started, used and ended by one test run.

    async with ControlPlane(binaries.find_or_build()) as control_plane:
        await control_plane.add_nodes(4)
        await control_plane.kubectl("apply", "-f", "-", user="alice", stdin=manifest)

Everything is on loopback and in one temporary folder. It ends exactly the processes it started;
if the test run is killed, the kernel ends them, and the next run removes the folder.
"""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import orjson

from tests.controlplane import certificates, components, identity, kubectl, nodes
from tests.controlplane.api import Api, ApiConnection, JsonObject
from tests.controlplane.binaries import Binaries
from tests.controlplane.group import ProcessGroup
from tests.controlplane.identity import ALICE, BOB, User
from tests.controlplane.nodes import NodeShape
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ChildProcess
from tests.controlplane.readiness import PortTakenError, wait_until_found
from tests.controlplane.scratch import ScratchDirectory

_START_ATTEMPTS = 3
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneOptions:
    """What a test may vary.

    With `scheduler` a kube-scheduler with the default profile runs; others are added by
    `ControlPlane.start_scheduler`. Flags come after those of `components`.
    """

    users: tuple[User, ...] = (ALICE, BOB)
    disabled_plugins: tuple[str, ...] = components.DISABLED_PLUGINS
    apiserver_flags: tuple[str, ...] = ()
    controllers: tuple[str, ...] = components.DEFAULT_CONTROLLERS
    controller_manager_flags: tuple[str, ...] = ()
    scheduler: bool = True
    scheduler_flags: tuple[str, ...] = ()
    kwok: bool = True


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok as child processes."""

    api: Api
    """The admin's client."""
    ready_seconds: float
    """How long the start took."""

    def __init__(self, binaries: Binaries, options: ControlPlaneOptions | None = None) -> None:
        self.binaries = binaries
        self.options = options or ControlPlaneOptions()
        self._users = {user.name: user for user in (*identity.SYSTEM_USERS, *self.options.users)}
        self._scratch = ScratchDirectory()
        self.processes = ProcessGroup(self._scratch.path)
        self._components: list[ChildProcess] = []
        self._connection: ApiConnection | None = None
        self._layout: components.Layout | None = None

    @property
    def directory(self) -> Path:
        """The temporary folder, for files that should go with the control plane."""
        return self._scratch.path

    @property
    def layout(self) -> components.Layout:
        """Ports and paths, known once it has started."""
        if self._layout is None:
            raise RuntimeError("the control plane was not started")
        return self._layout

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self.layout.server

    @property
    def ca_path(self) -> Path:
        """The certificate that verifies the API server."""
        return self.layout.ca_path

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start all components and return when the cluster is usable.

        Raises StartError, with the processes still to be ended by `stop`.
        """
        started = time.monotonic()
        for attempt in range(1, _START_ATTEMPTS + 1):
            try:
                await self._start_api()
                break
            except PortTakenError:
                await self._end_processes()
                if attempt == _START_ATTEMPTS:
                    raise
        await self._start_controllers()
        self.ready_seconds = time.monotonic() - started

    async def stop(self) -> None:
        """End every process that was started here, last one first, and remove the folder.

        The components get no grace: nothing of theirs is kept, and an API server ends slowly.
        """
        for process in reversed(list(self.processes)):
            if process not in self._components:
                await process.stop()
        await self._end_processes()
        self._scratch.remove()

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> ChildProcess:
        """Start a process that ends with the control plane and whose log is kept with the others.

        `env` is added to the environment of the test run; without `cwd` it runs in `directory`.
        """
        return self.processes.start(name, argv, env={**os.environ, **(env or {})}, cwd=cwd)

    def start_scheduler(
        self,
        config: JsonObject,
        *extra_flags: str,
        name: str = "kube-scheduler",
        kubeconfig: Path | None = None,
    ) -> ChildProcess:
        """Start a kube-scheduler; the connection to this API server is filled in.

        A second one needs a name of its own here and in its profiles. Without a kubeconfig it is
        the built-in scheduler's identity.
        """
        kubeconfig = kubeconfig or self.kubeconfig(identity.SCHEDULER.name)
        complete = components.complete_scheduler_config(config, kubeconfig=kubeconfig)
        config_path = self.directory / f"{name}.yaml"
        config_path.write_bytes(orjson.dumps(complete))
        argv = components.scheduler_argv(self.layout, *extra_flags, config_path=config_path)
        return self._spawn_component(name, argv)

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig file of one of the declared users."""
        return self.kubeconfig_for_token(user, self.token(user))

    def token(self, user: str = "admin") -> str:
        """The bearer token of a user."""
        return self._users[user].token

    def kubeconfig_for_token(self, name: str, token: str) -> Path:
        """Write a kubeconfig for any token, under a name of your choice."""
        path = self.directory / f"{name.replace(':', '-')}.kubeconfig"
        server, ca_path = self.layout.server, self.layout.ca_path
        path.write_bytes(identity.build_kubeconfig(server=server, ca_path=ca_path, token=token))
        return path

    async def service_account_token(self, namespace: str, name: str) -> str:
        """Have the API server issue a token for a service account that exists."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = await self.api.create(path, {"spec": {"expirationSeconds": 24 * 3600}})
        token: str = answer["status"]["token"]
        return token

    async def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """The kubeconfig of a service account that exists, with a newly issued token."""
        token = await self.service_account_token(namespace, name)
        return self.kubeconfig_for_token(f"{namespace}-{name}", token)

    def api_as(self, user: str) -> Api:
        """The client of one of the declared users."""
        return self.api_with_token(self.token(user))

    def api_with_token(self, token: str) -> Api:
        """A client that speaks with any token."""
        if self._connection is None:
            raise RuntimeError("the control plane was not started")
        return self._connection.as_bearer(token)

    async def kubectl(
        self,
        *arguments: str,
        user: str = "admin",
        stdin: str | None = None,
        check: bool = True,
        deadline_seconds: float = 60,
    ) -> kubectl.KubectlResult:
        """Run the built kubectl as a user; KubectlError on failure unless `check` is off."""
        result = await kubectl.run_kubectl(
            self.binaries.path("kubectl"),
            arguments,
            kubeconfig=self.kubeconfig(user),
            stdin=stdin,
            deadline_seconds=deadline_seconds,
        )
        if check and result.returncode != 0:
            raise kubectl.KubectlError(arguments, result)
        return result

    async def add_nodes(
        self, count: int, shape: NodeShape | None = None, *, prefix: str = "node", first: int = 0
    ) -> list[str]:
        """Create fake GPU nodes `<prefix>-<first>` and on, all Ready; returns their names."""
        numbers = range(first, first + count)
        shape = shape or NodeShape()
        built = [nodes.build_node(number, shape, prefix=prefix) for number in numbers]
        await nodes.create_nodes(self.api, built)
        return [node["metadata"]["name"] for node in built]

    async def delete_nodes(self, names: Sequence[str]) -> None:
        """Delete nodes; what is bound to them goes when the pod garbage collector notices."""
        await nodes.delete_nodes(self.api, names)

    async def _start_api(self) -> None:
        etcd_port, etcd_peer_port, apiserver_port = free_ports(3)
        self._layout = components.Layout(
            binaries=self.binaries,
            directory=self.directory,
            etcd_port=etcd_port,
            etcd_peer_port=etcd_peer_port,
            apiserver_port=apiserver_port,
        )
        certificates.save_certificates(self.directory)
        tokens = identity.format_token_file(tuple(self._users.values()))
        (self.directory / components.TOKEN_FILE).write_text(tokens)
        self._spawn_component("etcd", components.etcd_argv(self._layout))
        argv = components.apiserver_argv(
            self._layout,
            *self.options.apiserver_flags,
            disabled_plugins=self.options.disabled_plugins,
        )
        self._spawn_component("kube-apiserver", argv)
        self._connection = ApiConnection(self._layout.server, self._layout.ca_path)
        self.api = self.api_as(identity.ADMIN.name)
        await wait_until_found("/readyz", self.api, self.processes)

    async def _start_controllers(self) -> None:
        argv = components.controller_manager_argv(
            self.layout,
            *self.options.controller_manager_flags,
            kubeconfig=self.kubeconfig(identity.CONTROLLER_MANAGER.name),
            controllers=self.options.controllers,
        )
        self._spawn_component("kube-controller-manager", argv)
        if self.options.scheduler:
            self.start_scheduler({}, *self.options.scheduler_flags)
        if self.options.kwok:
            kubeconfig = self.kubeconfig(identity.KWOK_USER.name)
            self._spawn_component("kwok", components.kwok_argv(self.layout, kubeconfig=kubeconfig))
        await self.api.create(f"{_RBAC}/clusterroles", identity.build_user_role())
        binding = identity.build_user_binding(self.options.users)
        await self.api.create(f"{_RBAC}/clusterrolebindings", binding)
        # Made by the serviceaccount controller: the sign that controllers are at work.
        await wait_until_found(_DEFAULT_ACCOUNT, self.api, self.processes)

    def _spawn_component(self, name: str, argv: Sequence[str]) -> ChildProcess:
        # A clean environment: no proxy, and no configuration from the user's home.
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.directory)}
        component = self.processes.start(name, argv, env=env)
        self._components.append(component)
        return component

    async def _end_processes(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        await self.processes.stop(grace_seconds=0)
        self._components.clear()
        # A second attempt must not find the first one's members and ports.
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
