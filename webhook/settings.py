"""How one webhook runs."""

from dataclasses import dataclass
from pathlib import Path

from service.settings import Address
from webhook.policies import DEFAULT_ADMINS


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """How one webhook runs."""

    address: Address
    certificates: Path
    """Directory of CA and serving certificate; made when missing."""
    namespace: str = "cellgate-system"
    """Where the policy documents are, and our own Service."""
    admins: tuple[str, ...] = DEFAULT_ADMINS
    """Users and groups who may change every policy document."""
    gates_all: bool = True
    """Whether every gang waits for the planner."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names by which the API server may call us."""
        service = f"cellgate-webhook.{self.namespace}.svc"
        return self.address.host, "localhost", "127.0.0.1", service
