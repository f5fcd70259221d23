"""The command lines of the control plane's components: pure, one function each.

Every component keeps its state in one folder and listens on loopback or not at all. Webhooks are
reached by URL on loopback, so no cluster network is needed.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.controlplane import certificates
from tests.controlplane.api import JsonObject
from tests.controlplane.binaries import KWOK, Binaries
from tests.controlplane.ports import LOOPBACK

TOKEN_FILE = "tokens.csv"

# What a cluster normally runs, without clouds, volumes and kubelet certificates.
# node-lifecycle is left out: it would evict from nodes without heartbeats.
DEFAULT_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)

# ServiceAccount: pods must not have to wait for their namespace's account.
# TaintNodesByCondition: no controller would lift the not-ready taint it puts on new nodes.
DISABLED_PLUGINS = ("ServiceAccount", "TaintNodesByCondition")

_STAGES = Path(__file__).with_name("kwok.yaml")
_ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one control plane lives: its programs, its folder, its ports."""

    binaries: Binaries
    directory: Path
    etcd_port: int
    etcd_peer_port: int
    apiserver_port: int

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://{LOOPBACK}:{self.apiserver_port}"

    @property
    def ca_path(self) -> Path:
        """The certificate that verifies the API server."""
        return self.directory / certificates.CA_CERTIFICATE

    def program(self, name: str) -> str:
        """The path of a program, as text for a command line."""
        return str(self.binaries.path(name))


def etcd_argv(layout: Layout) -> list[str]:
    """One member, plain HTTP, no fsync: its data lives as long as the test run."""
    client = f"http://{LOOPBACK}:{layout.etcd_port}"
    peer = f"http://{LOOPBACK}:{layout.etcd_peer_port}"
    return [
        layout.program("etcd"),
        f"--data-dir={layout.directory / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_argv(
    layout: Layout, *extra_flags: str, disabled_plugins: tuple[str, ...] = DISABLED_PLUGINS
) -> list[str]:
    """RBAC, static tokens and service-account tokens."""
    directory = layout.directory
    return [
        layout.program("kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{layout.etcd_port}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={layout.apiserver_port}",
        f"--tls-cert-file={directory / certificates.SERVER_CERTIFICATE}",
        f"--tls-private-key-file={directory / certificates.SERVER_KEY}",
        f"--token-auth-file={directory / TOKEN_FILE}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={directory / certificates.SERVICE_ACCOUNT_PUBLIC_KEY}",
        f"--service-account-signing-key-file={directory / certificates.SERVICE_ACCOUNT_KEY}",
        f"--disable-admission-plugins={','.join(disabled_plugins)}",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        *extra_flags,
    ]


def controller_manager_argv(
    layout: Layout, *extra_flags: str, kubeconfig: Path, controllers: tuple[str, ...]
) -> list[str]:
    """Each controller acts under its own service account, as in a real cluster."""
    return [
        layout.program("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        f"--service-account-private-key-file={layout.directory / certificates.SERVICE_ACCOUNT_KEY}",
        f"--root-ca-file={layout.ca_path}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *extra_flags,
    ]


def scheduler_argv(layout: Layout, *extra_flags: str, config_path: Path) -> list[str]:
    """A scheduler is all in its configuration file."""
    return [
        layout.program("kube-scheduler"),
        f"--config={config_path}",
        "--secure-port=0",
        *extra_flags,
    ]


def complete_scheduler_config(config: JsonObject, *, kubeconfig: Path) -> JsonObject:
    """Add to a scheduler configuration what depends on this control plane."""
    connection = {"qps": 500, "burst": 1000, **config.get("clientConnection", {})}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **config,
        "clientConnection": {**connection, "kubeconfig": str(kubeconfig)},
    }


def kwok_argv(layout: Layout, *, kubeconfig: Path) -> list[str]:
    """kwok plays the kubelet of every node; without a server address it does not listen."""
    return [
        layout.program(KWOK),
        f"--kubeconfig={kubeconfig}",
        f"--config={_STAGES}",
        "--manage-all-nodes=true",
        f"--node-ip={LOOPBACK}",
    ]
