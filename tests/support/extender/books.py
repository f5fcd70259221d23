"""`Books`: a ledger that is kept by the pods of a shell, and a clock to make its charges older."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from extender.settings import LEADERSHIP
from extender.upkeep.ledger_sync import LedgerSync
from policy.classes import Classes, PriorityClass
from policy.policy import build
from policy.quotas.charge import Charge
from policy.quotas.limits import Scope
from policy.quotas.quota_table import QuotaGroup, QuotaTable
from policy.submission import ClassName, GangKey, GroupName, UserName
from service.clock import Clock
from state.ledger.ledger import LeaderTerm
from tests.support.extender.group_sizes import GroupSizes
from tests.support.extender.shell import Shell
from tests.support.state.charges import a_charge
from tests.support.twins.ledger import MemoryLedger

CLASSES = Classes.of(
    [PriorityClass(name=ClassName("prod"), cell_priority=9, high=True)], default=ClassName("prod")
)

VISION = QuotaGroup(name=GroupName("vision"))
POLICY = replace(build({}), classes=CLASSES, quotas=QuotaTable([VISION]))


def gang_charge(gang: str, *, decision: UUID) -> Charge:
    key = GangKey("lab", gang)
    return a_charge(key, decision=decision, group=None, leaf_type=None, leaf_count=16)


class Books:
    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.ledger = MemoryLedger(now)
        self.shell = Shell()
        self.seconds = 0.0
        self.has_leases = True
        self.keeper = LedgerSync(
            ledger=self.ledger,
            pods=self.shell.pods,
            sizes=GroupSizes(2),
            policy=lambda: POLICY,
            has_leases=lambda _: self.has_leases,
            term=lambda: LeaderTerm(leadership=LEADERSHIP, epoch=1),
            metrics=self.shell.metrics,
            clock=Clock(monotonic=lambda: self.seconds),
        )

    async def held(self) -> int:
        return (await self.ledger.usage(Scope(UserName("alice")))).leaf_cells


class Later:
    """A clock of the ledger, some time ago or now."""

    def __init__(self) -> None:
        self.ago = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) - self.ago


async def prove_later(books: Books, clock: Later, *, seconds: float) -> None:
    """Compare after so many seconds: for the ledger, what it has was charged then."""
    clock.ago -= timedelta(seconds=seconds)
    await books.keeper.prove()
