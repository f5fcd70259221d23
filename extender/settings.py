"""How one extender runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kube.api.leadership import LeadershipSettings
from policy.errors import SettingsError
from service.settings import Address

LEADERSHIP: Final = "cellgate-extender"
"""Name of the leadership that the replicas share, in Kubernetes and in the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderSettings:
    """How one extender runs."""

    address: Address
    namespace: str = "cellgate-system"
    """Where the policy documents are."""
    cluster_file: Path | None = None
    """The cluster document as a file, instead of a ConfigMap."""
    lease_seconds: float = 60.0
    """How long unbound places stay held; too short, and a slow gang never gets together."""
    preempt_patience_seconds: float = 5.0
    """How long kube-scheduler has to ask whom to preempt, before we end victims by ourselves; it
    asks in the same cycle as filter, or not at all."""
    allows_insecure_http: bool = False
    """Serve plain HTTP beyond loopback: whoever reaches the address can then bind pods."""
    wants_tls: bool = False
    """Serve TLS, and check who calls, on loopback too."""
    certificates: Path | None = None
    """Directory of the certificates to serve with; made when missing, unless it was given."""
    leadership: LeadershipSettings | None = None
    """How replicas agree on who leads; None for one that has no rivals."""
    pod_name: str | None = None
    """Our pod, to be labelled when it leads; None where there is none."""

    def check(self) -> None:
        """Raise SettingsError for settings that are not safe."""
        if self.wants_tls and self.allows_insecure_http:
            raise SettingsError("--tls and --insecure-http exclude each other: give one of them")
        if self.serves_tls and self.certificates is None:
            beyond = f"{self.address.flag} {self.address} is not loopback, and verbs can bind pods"
            why = "--tls was given" if self.wants_tls else beyond
            raise SettingsError(
                f"{why}: name a directory for certificates with `cellgate extender --certs DIR`, "
                "or serve plain HTTP on 127.0.0.1"
            )

    @property
    def serves_tls(self) -> bool:
        """Whether we serve TLS, and so check who calls."""
        return self.wants_tls or not (self.address.is_loopback or self.allows_insecure_http)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which kube-scheduler and people may call us."""
        return self.address.host, *service_hosts(self.namespace)


def service_hosts(namespace: str) -> tuple[str, ...]:
    """The names of every extender of an installation: those of its Service, and loopback."""
    return f"cellgate-extender.{namespace}.svc", "localhost", "127.0.0.1"
