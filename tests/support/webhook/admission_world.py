"""An admitter over a ledger in memory, and requests to it, said in one line."""

import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from policy.admission.charge_request import ChargeRequest
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.quotas.limits import Scope
from policy.quotas.usage import ScopeUsage
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, GroupName, LeafType, Submission, UserName
from tests.support.clocks import FrozenTime
from tests.support.policy.documents import CLASSES_TEXT, HEAD
from tests.support.twins.ledger import MemoryLedger
from tests.support.twins.usage import MemoryUsage
from tests.support.webhook.replayed import ReplayedAdmitter
from webhook.admission.admitter import Admitter
from webhook.admission.recent_gangs import RecentGangs
from webhook.ledger_access.breaker import Breaker


def a_policy(*, rules: str = "- {user: mallory, then: fail}", quotas: str = "groups: []") -> Policy:
    """Return a policy of the usual three classes with these rules and quotas."""
    texts = [
        PolicyText(kind=DocumentKind.CLASSES, source="classes", text=CLASSES_TEXT),
        PolicyText(kind=DocumentKind.RULES, source="rules", text=f"{HEAD}Rules\nrules:\n{rules}"),
        PolicyText(kind=DocumentKind.QUOTAS, source="quotas", text=f"{HEAD}Quotas\n{quotas}"),
    ]
    return build_policy(texts)


@dataclass(slots=True)
class AdmissionWorld:
    """One ledger, with any number of replicas that charge it."""

    policy: Policy = field(default_factory=a_policy)
    clock: FrozenTime = field(default_factory=FrozenTime)
    ledger: MemoryLedger = field(init=False)
    usage: MemoryUsage = field(init=False)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.ledger = MemoryLedger(self.clock)
        self.usage = MemoryUsage(self.ledger)

    def breaker(self, **settings: Any) -> Breaker:
        """A breaker of this ledger."""
        return Breaker(lambda: self.ledger.usage(Scope(UserName("alice"))), **settings)

    def replica(
        self,
        usage: MemoryUsage | None = None,
        *,
        breaker: Breaker | None = None,
        recent: RecentGangs | None = None,
    ) -> Admitter:
        """Start one more process."""
        return ReplayedAdmitter(
            ledger=self.ledger,
            usage=usage or self.usage,
            breaker=breaker or self.breaker(),
            recent=RecentGangs(monotonic=lambda: self.seconds) if recent is None else recent,
        )

    def member(self, gang: str, *, own: int, size: int) -> ChargeRequest:
        """Ask for a gang by one of its members, that knows nothing of the others."""
        return replace(self.ask(gang, cells=own * size, size=size), member_leaf_count=own)

    def ask(
        self,
        gang: str = "bert",
        *,
        user: str = "alice",
        cells: int = 1,
        class_name: str = "prod",
        size: int = 1,
        leaf_type: str | None = None,
        **fields: Any,
    ) -> ChargeRequest:
        """Ask for a gang."""
        submission = Submission(
            user=UserName(user),
            requested_class=ClassName(class_name),
            gang=GangKey("lab", gang),
            gang_size=size,
            leaf_count=cells,
            leaf_type=None if leaf_type is None else LeafType(leaf_type),
            **fields,
        )
        named: GroupName | None = None
        return ChargeRequest(
            submission=submission,
            group=self.policy.quotas.find(submission.user, (), named=named, path=""),
            decision=uuid.uuid4(),
            policy=self.policy,
            is_alone=size == 1,
        )


class StaleUsage(MemoryUsage):
    """Knows what was true long ago: nothing was held, or very much."""

    def __init__(self, world: AdmissionWorld, *, leaf_cells: int) -> None:
        super().__init__(world.ledger)
        self._leaf_cells = leaf_cells

    def usage(self, scope: Scope) -> ScopeUsage:
        return ScopeUsage(
            scope=scope, leaf_cells=self._leaf_cells, leaf_cells_high=self._leaf_cells
        )
