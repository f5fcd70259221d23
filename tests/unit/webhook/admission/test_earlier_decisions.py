"""What the ledger is asked about gangs that may have a decision already."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from policy.admission.gang_decision import GangDecision
from policy.quotas.charge import Charge
from policy.quotas.limits import Limit, Scope
from policy.rules.decision import Outcome
from policy.submission import GangKey, UserName
from state.ledger.ledger import ChargeAnswer, KnownGang
from tests.support.clocks import FrozenTime
from tests.support.state.charges import TERM
from tests.support.twins.ledger import MemoryLedger
from tests.support.webhook.admission_world import AdmissionWorld, StaleUsage, a_policy


class _Charges(MemoryLedger):
    """A ledger that knows what it was asked to charge."""

    def __init__(self, clock: FrozenTime) -> None:
        super().__init__(clock)
        self.charged: list[Charge] = []

    async def charge(self, charge: Charge, *, limits: Sequence[Limit] = ()) -> ChargeAnswer:
        self.charged.append(charge)
        return await super().charge(charge, limits=limits)


def _got(decision: GangDecision) -> tuple[str, str]:
    return str(decision.outcome), str(decision.final_class)


async def test_a_refusal_leaves_no_trace_in_the_ledger() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 3', then: fail}"))
    ledger = _Charges(world.clock)
    world.ledger = ledger
    refused = await world.replica(StaleUsage(world, leaf_cells=0)).admit(world.ask(cells=4))
    assert refused.outcome is Outcome.REFUSED
    assert ledger.charged == []


async def test_a_late_member_keeps_the_charge_of_its_gang_that_the_rules_would_refuse_now() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: fail}"))
    first = await world.replica().admit(world.ask(cells=8, size=2))
    world.clock.advance(seconds=11)
    second = await world.replica().admit(world.ask(cells=8, size=2))
    assert (_got(second), second.decision_id) == (("admitted", "prod"), first.decision_id)
    assert await world.ledger.expire(term=TERM) == ()


async def test_a_charge_that_ends_while_a_late_member_asks_is_decided_anew() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: fail}"))
    first = await world.replica().admit(world.ask(cells=8, size=2))
    world.clock.advance(seconds=11)
    world.ledger.find = _ending(world)  # type: ignore[method-assign]
    second = await world.replica().admit(world.ask(cells=8, size=2))
    assert _got(second) == ("admitted", "prod")
    assert second.decision_id != first.decision_id
    assert (await world.ledger.usage(Scope(UserName("alice")))).leaf_cells == 8


def _ending(world: AdmissionWorld) -> Callable[..., Coroutine[Any, Any, KnownGang]]:
    """Let charges that have expired end after each question."""
    find = world.ledger.find

    async def asked(gang: GangKey, *, scope: Scope) -> KnownGang:
        known = await find(gang, scope=scope)
        await world.ledger.expire(term=TERM)
        return known

    return asked
