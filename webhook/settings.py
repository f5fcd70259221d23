"""The settings of one webhook process."""

from dataclasses import dataclass
from pathlib import Path

from policy.errors import SettingsError
from service.runner import LINGER_SECONDS
from service.settings import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How one webhook process runs."""

    address: Address
    certificates: Path | None = None
    """Directory of the CA and the serving certificate; created if missing, reloaded on change."""
    secret: str | None = None
    """The Secret with certificates that replicas share, instead of a directory."""
    ca_overlap_seconds: float = 7 * 24 * 3600.0
    """How long clients trust a new CA before it signs. kube-scheduler reads its CA only when it
    starts, so it must be restarted within that time."""
    identity: str = ""
    """The name of this process in leader election, unique. Required with a Secret."""
    client_ca: Path | None = None
    """The CA of the client certificate that the API server must present; None requires none."""
    client_names: tuple[str, ...] = ()
    """The common names that such a certificate may have; empty allows any."""
    linger_seconds: float = LINGER_SECONDS
    """How long the webhook answers after SIGTERM, closing each connection after its answer: an API
    server does not retry on a connection that is closed while it sends."""
    namespace: str = "cellgate-system"
    """The namespace of the policy documents and of our Service."""
    admins: tuple[str, ...] = ("system:masters", "kubeadm:cluster-admins")
    """Users and groups that may change every policy document."""
    binders: tuple[str, ...] = ("system:kube-scheduler",)
    """Users and groups that may bind managed pods, beside our own services."""
    reclaims_gently: bool = False
    """Whether the extender may suspend Jobs: then their owners need no advice."""
    gates_all: bool = True
    """Whether every gang waits for the planner behind a gate."""

    def check(self) -> None:
        """Raise SettingsError for settings that cannot work."""
        if self.certificates is None and self.secret is None:
            raise SettingsError(
                "name a directory for certificates with --certs DIR, "
                "or the Secret that replicas share with --certs-secret NAME"
            )
        if self.client_names and self.client_ca is None:
            raise SettingsError("--client-names needs --client-ca FILE")

    @property
    def extender(self) -> str:
        """The service account of the extender, the only service of ours that changes pods."""
        return f"system:serviceaccount:{self.namespace}:cellgate-extender"

    @property
    def scheduler(self) -> str:
        """The service account of our kube-scheduler."""
        return f"system:serviceaccount:{self.namespace}:cellgate-scheduler"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names under which the API server may call us."""
        service = f"cellgate-webhook.{self.namespace}.svc"
        return self.address.host, "localhost", "127.0.0.1", service
