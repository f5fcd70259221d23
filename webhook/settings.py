"""How one webhook runs."""

from dataclasses import dataclass
from pathlib import Path

from policy.errors import SettingsError
from service.http import LINGER_SECONDS
from service.settings import Address
from webhook.reviews.policy_reviews import DEFAULT_ADMINS


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How one webhook runs."""

    address: Address
    certificates: Path | None = None
    """Directory of CA and serving certificate; made when missing, followed when given."""
    secret: str | None = None
    """The Secret that replicas share certificates by, instead of a directory."""
    ca_overlap_seconds: float = 7 * 24 * 3600.0
    """How long callers know of a new CA before it signs; kube-scheduler reads its CA only when it
    starts, so it must be started again within that time."""
    identity: str = ""
    """Unique to this process: by which it leads. Needed with a Secret."""
    client_ca: Path | None = None
    """The CA of the certificate that the API server must show; None asks for none."""
    client_names: tuple[str, ...] = ()
    """The common names that such a certificate may have; without any, every name will do."""
    linger_seconds: float = LINGER_SECONDS
    """How long we go on answering when asked to end, each caller for the last time: an API server
    must find its connections closed before it uses them again, since it does not ask twice."""
    namespace: str = "cellgate-system"
    """Where the policy documents are, and our own Service."""
    admins: tuple[str, ...] = DEFAULT_ADMINS
    """Users and groups who may change every policy document."""
    binders: tuple[str, ...] = ("system:kube-scheduler",)
    """Users and groups who may bind managed pods, beside our own services."""
    gates_all: bool = True
    """Whether every gang waits for the planner."""

    def check(self) -> None:
        """Raise SettingsError for what cannot be served with."""
        if self.certificates is None and self.secret is None:
            raise SettingsError(
                "name a directory for certificates with --certs DIR, "
                "or the Secret that replicas share with --certs-secret NAME"
            )
        if self.client_names and self.client_ca is None:
            raise SettingsError("--client-names needs --client-ca FILE")

    @property
    def extender(self) -> str:
        """The only one of our services that writes on pods which exist."""
        return f"system:serviceaccount:{self.namespace}:cellgate-extender"

    @property
    def scheduler(self) -> str:
        """Our own kube-scheduler."""
        return f"system:serviceaccount:{self.namespace}:cellgate-scheduler"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the API server may call us."""
        service = f"cellgate-webhook.{self.namespace}.svc"
        return self.address.host, "localhost", "127.0.0.1", service
