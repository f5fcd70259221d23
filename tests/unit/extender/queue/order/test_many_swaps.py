"""Many gangs that name one for a swap: one change looks at few of them."""

from extender.queue.order.swaps import Swaps
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest
from policy.submission import GangKey
from tests.support.queue.orders import facts

NAMED = GangKey("lab", "named")


def _swaps(number: int) -> tuple[Swaps, list[GangKey]]:
    gangs = [GangKey("lab", f"gang-{one:03}") for one in range(number)]
    swaps = Swaps()
    for at, gang in enumerate(gangs):
        request = SwapRequest(other=NAMED, role=HoldRole.OWNER, user="alice", at=float(at))
        swaps.put(gang, request)
    return swaps, gangs


def test_one_change_concerns_few_gangs() -> None:
    """Else one user lets the leader rank hundreds of gangs at each change of one of them."""
    swaps, gangs = _swaps(300)
    assert len(swaps.concerned(NAMED)) < 10
    assert len(swaps.concerned(gangs[-1])) < 11


def test_those_that_asked_first_count_and_others_are_told() -> None:
    swaps, gangs = _swaps(10)
    late = swaps.state(facts(gang=gangs[-1]), {})
    assert late is not None
    assert late.why_not == "8 other gangs asked before for a swap with lab/named"
    for gang in gangs[:2]:
        swaps.remove(gang)
    found = swaps.state(facts(gang=gangs[-1]), {})
    assert found is not None
    assert found.why_not == "gang lab/gang-009 does not wait for cells"
