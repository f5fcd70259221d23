"""The settings of one extender process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from extender.defaults import HOLD_SECONDS
from kube.api.leadership import LeadershipSettings
from kube.marks import EXTENDER_LEADERSHIP
from policy.errors import SettingsError
from service.settings import Address

LEADERSHIP: Final = EXTENDER_LEADERSHIP
"""Name of the leadership that the replicas share, in Kubernetes and in the ledger."""
_LEAST_HOLD_SECONDS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderSettings:
    """The settings of one extender process."""

    address: Address
    namespace: str = "cellgate-system"
    """The namespace of the policy documents."""
    cluster_file: Path | None = None
    """A file with the Cluster document, used instead of a ConfigMap."""
    lease_seconds: float = 60.0
    """How long a lease holds places that are not bound; if too short, a slow gang never starts."""
    hold_seconds: float = HOLD_SECONDS
    """How long the bindings of a gang are held until all members can be bound. It must be below
    the `httpTimeout` of kube-scheduler's bind entry; if too short, large gangs never start."""
    preempt_patience_seconds: float = 5.0
    """How long the extender waits for kube-scheduler's `preempt` before it ends victims itself;
    kube-scheduler sends it in the same cycle as `filter`, or not at all."""
    reclaims_gently: bool = False
    """Suspend and resume the workloads of victims, where their kind has that, and resume elastic
    Jobs; needs the right to patch them (manifests/components/gentle-reclaim)."""
    allows_insecure_http: bool = False
    """Serve plain HTTP beyond loopback: every program that reaches the address can bind pods."""
    wants_tls: bool = False
    """Serve TLS, and authenticate callers, on loopback too."""
    certificates: Path | None = None
    """Directory of the serving certificates; they are created if missing."""
    leadership: LeadershipSettings | None = None
    """How replicas elect the leader; None for a single replica."""
    pod_name: str | None = None
    """The name of this pod, labelled while it leads; None outside a pod."""

    provisioning_class: str | None = None
    """The class of the ProvisioningRequests for gangs that wait for nodes; None: there are none."""

    def check(self) -> None:
        """Raise SettingsError if the settings are not safe."""
        if self.hold_seconds < _LEAST_HOLD_SECONDS:
            least = f"must be at least {_LEAST_HOLD_SECONDS}"
            raise SettingsError(f"--hold-seconds {least}: kube-scheduler needs time for a gang")
        if self.wants_tls and self.allows_insecure_http:
            raise SettingsError("--tls and --insecure-http exclude each other; give one of them")
        if self.serves_tls and self.certificates is None:
            beyond = f"{self.address.flag} {self.address} is not loopback, and verbs can bind pods"
            why = "--tls was given" if self.wants_tls else beyond
            raise SettingsError(
                f"{why}: name a directory for certificates with `cellgate extender --certs DIR`, "
                "or serve plain HTTP on 127.0.0.1"
            )

    @property
    def serves_tls(self) -> bool:
        """Whether the extender serves TLS and authenticates callers."""
        return self.wants_tls or not (self.address.is_loopback or self.allows_insecure_http)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names in the serving certificate."""
        return self.address.host, *service_hosts(self.namespace)


def service_hosts(namespace: str) -> tuple[str, ...]:
    """Return the host names that all replicas have: those of the Service, and loopback."""
    return f"cellgate-extender.{namespace}.svc", "localhost", "127.0.0.1"
