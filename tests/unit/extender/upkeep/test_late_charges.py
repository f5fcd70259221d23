"""Members that are created later are charged with their gang, while cells are leased for them."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

from kube import marks
from tests.support.extender.books import Books, Later, gang_charge, prove_later
from tests.support.kube.pods import PodBuilder, a_pod


def late_member(name: str, decision: UUID, leaf_count: int) -> PodBuilder:
    pod = a_pod(name).with_gpus(leaf_count).in_vc("lab").in_gang("g", size=4).of_class("prod")
    pod = pod.annotated(marks.LATE_ANNOTATION, "2x8").submitted_by("alice")
    return pod.annotated(marks.DECISION_ANNOTATION, str(decision))


async def _charge_late(books: Books, decision: UUID) -> None:
    """Two members have one leaf cell each, two that are created later have eight."""
    charge = replace(gang_charge("g", decision=decision), leaf_count=18)
    await books.ledger.charge(replace(charge, places=14, gang_size=4, leaf_count_each=1))
    books.shell.pods.upsert(late_member("a", decision, 1).bound_to("node-00"))


async def test_members_that_are_created_later_are_charged_while_their_cells_are_leased() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    await _charge_late(books, decision)
    helper = late_member("launcher", decision, 0).bound_to("node-00")
    books.shell.pods.upsert(helper)
    await books.keeper.settle()
    await prove_later(books, clock, seconds=11)
    (live,) = await books.ledger.charges()
    assert (live.charge.leaf_count, live.charge.places) == (18, 14), "a helper pays until they come"


async def test_late_members_that_do_not_come_are_not_charged_once_their_cells_are_free() -> None:
    clock = Later()
    clock.ago = timedelta(minutes=2)
    books, decision = Books(clock), uuid4()
    await _charge_late(books, decision)
    await books.keeper.settle()
    clock.ago = timedelta()
    await books.keeper.compare()
    assert await books.held() == 18
    books.has_leases = False
    await books.keeper.compare()
    assert await books.held() == 2, "another member may be created at any time"
    (live,) = await books.ledger.charges()
    assert live.charge.places == 0, "they pay anew if they come after all"


async def test_a_forged_member_raises_no_charge_while_late_members_are_awaited() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    await _charge_late(books, decision)
    books.shell.pods.upsert(late_member("b", decision, 1).bound_to("node-01"))
    await books.keeper.settle()
    (live,) = await books.ledger.charges()
    await books.ledger.resize(live.charge, 4000)
    await prove_later(books, clock, seconds=11)
    assert await books.held() == 18
