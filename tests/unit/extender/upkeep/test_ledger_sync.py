"""The ledger follows the pods."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from extender.settings import LEADERSHIP
from extender.upkeep import ledger_sync
from kube import marks
from policy.quotas.limits import Limit, Measure, Scope
from policy.submission import ClassName, GangKey, GroupName, UserName
from state.ledger.ledger import Charged, LeaderTerm
from tests.support.extender.books import Books, Later, gang_charge, prove_later
from tests.support.kube.pods import PodBuilder, a_pod


def member(name: str, decision: UUID) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").in_gang("g", size=2).of_class("prod")
    return pod.submitted_by("alice").annotated(marks.DECISION_ANNOTATION, str(decision))


async def test_a_charge_is_confirmed_with_its_pods_and_released_with_the_last() -> None:
    books, decision = Books(), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    await books.keeper.settle()
    (live,) = await books.ledger.charges()
    assert live.expires_at is None

    books.shell.pods.remove(member("a", decision))
    await books.keeper.settle()
    assert await books.held() == 16
    books.shell.pods.remove(member("b", decision))
    await books.keeper.settle()
    assert await books.held() == 0


async def test_a_standby_does_not_remember_every_gang_that_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It releases nothing; the charges of those that it forgot are found by comparing."""
    monkeypatch.setattr(ledger_sync, "_MOST_ENDED", 1)
    now = [datetime.now(UTC)]
    books, decision = Books(lambda: now[0]), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    books.shell.pods.upsert(member("a", decision))
    await books.keeper.settle()
    books.shell.pods.remove(member("a", decision))
    for name in ("other", "another"):
        books.shell.pods.upsert(a_pod(name).with_gpus(8).in_vc("lab"))
        books.shell.pods.remove(a_pod(name).with_gpus(8).in_vc("lab"))
    await books.keeper.settle()
    assert (await books.held(), books.keeper.compares_soon) == (16, True)
    now[0] += timedelta(minutes=1)
    await books.keeper.compare()
    assert await books.held() == 0


async def test_a_pod_that_is_created_again_at_once_is_charged_at_the_next_look() -> None:
    """The webhook followed the charge of the pod before it, which is then released."""
    books, decision = Books(), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    await books.keeper.settle()
    for name in ("a", "b"):
        books.shell.pods.remove(member(name, decision))
    await books.keeper.settle()
    assert await books.held() == 0
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision).with_metadata(uid=f"new-{name}"))
    await books.keeper.settle()
    assert await books.held() == 16
    (live,) = await books.ledger.charges()
    assert live.expires_at is None, "it is confirmed"


async def test_a_pod_that_runs_without_a_decision_is_charged_to_its_owner_until_it_ends() -> None:
    books, stray = Books(), a_pod("stray").with_gpus(8).in_vc("lab").in_gang("g", size=4)
    books.shell.pods.upsert(stray.submitted_by("alice", "vision").charged_to("nlp").bound_to("n0"))
    books.shell.pods.upsert(a_pod("own").with_gpus(2).in_vc("lab").bound_to("n1"))
    assert books.keeper.compares_soon
    await books.keeper.compare()
    charges = [live.charge for live in await books.ledger.charges()]
    assert [(one.gang, one.user, one.group, one.leaf_count) for one in charges] == [
        (GangKey("lab", "foreign/own"), "system:serviceaccount:lab:default", None, 2),
        (GangKey("lab", "foreign/stray"), "alice", "vision", 8),
    ]
    assert charges[1].class_name == "prod"
    await books.keeper.compare()
    assert books.shell.drift("ledger-created") == 2

    books.shell.pods.remove(stray)
    await books.keeper.settle()
    assert await books.held() == 0


async def test_a_pod_without_a_decision_does_not_add_to_the_charge_of_a_gang() -> None:
    books, decision = Books(), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    forged = a_pod("c").with_gpus(8).in_vc("lab").in_gang("g", size=2).bound_to("n0")
    books.shell.pods.upsert(forged)
    await books.keeper.compare()
    assert await books.held() == 16


async def test_gangs_that_run_uncharged_are_charged_and_those_that_wait_in_the_queue_are_not() -> (
    None
):
    books, decision = Books(), uuid4()
    queued = member("a", decision).gated().annotated(marks.UNCHARGED_ANNOTATION, "true")
    books.shell.pods.upsert(queued)
    await books.keeper.compare()
    assert await books.held() == 0

    books.shell.pods.upsert(member("a", decision))
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert live.charge == gang_charge("g", decision=decision)
    assert books.shell.drift("ledger-created") == 1
    await books.keeper.compare()
    assert books.shell.drift("ledger-created") == 1


def a_while_ago() -> datetime:
    return datetime.now(UTC) - timedelta(minutes=1)


async def test_a_whole_gang_is_charged_for_what_its_pods_ask_for() -> None:
    books, decision = Books(a_while_ago), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    books.shell.pods.upsert(member("a", decision))
    await books.keeper.compare()
    assert await books.held() == 16
    books.shell.pods.upsert(member("b", decision).with_gpus(2))
    await books.keeper.compare()
    assert await books.held() == 10


async def test_cpu_and_memory_are_counted_by_the_pods() -> None:
    books, decision = Books(a_while_ago), uuid4()
    charge = replace(gang_charge("g", decision=decision), cpu_millis=99)
    await books.ledger.charge(charge)
    books.shell.pods.upsert(member("a", decision).with_cpu("1500m"))
    await books.keeper.compare()
    scope = Scope(UserName("alice"))
    assert (await books.ledger.usage(scope)).cpu_millis == 3000, "the other is like this one"
    books.shell.pods.upsert(member("b", decision).with_cpu("500m"))
    await books.keeper.compare()
    assert (await books.ledger.usage(scope)).cpu_millis == 2000
    assert await books.held() == 16


async def test_members_without_leaf_cells_are_not_charged_once_they_are_seen() -> None:
    books, decision = Books(a_while_ago), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    books.shell.pods.upsert(member("worker", decision))
    books.shell.pods.upsert(a_pod("launcher").in_vc("lab").in_gang("g", size=2))
    await books.keeper.compare()
    assert await books.held() == 8


async def test_what_was_charged_just_now_is_only_corrected_upwards() -> None:
    books, decision = Books(), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    books.shell.pods.upsert(member("a", decision).with_gpus(2))
    books.shell.pods.upsert(member("b", decision).with_gpus(2))
    await books.keeper.compare()
    assert await books.held() == 16
    books.shell.pods.upsert(member("a", decision).with_gpus(12))
    books.shell.pods.upsert(member("b", decision).with_gpus(12))
    await books.keeper.compare()
    assert await books.held() == 24


def of_group(name: str, decision: UUID) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_native_gang("g").of_class("prod").in_vc("lab")
    return pod.submitted_by("alice").annotated(marks.DECISION_ANNOTATION, str(decision))


async def test_members_beyond_the_minimum_of_their_group_are_charged_too() -> None:
    books, decision = Books(a_while_ago), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    for name in "abc":
        books.shell.pods.upsert(of_group(name, decision))
    await books.keeper.compare()
    assert await books.held() == 24
    books.shell.pods.remove(of_group("a", decision))
    await books.keeper.compare()
    assert await books.held() == 16


async def test_pods_that_are_charged_alone_are_released_one_by_one() -> None:
    books = Books()
    pods = [of_group(name, uuid4()).annotated(marks.ALONE_ANNOTATION, "true") for name in "ab"]
    for pod in pods:
        books.shell.pods.upsert(pod)
    await books.keeper.compare()
    assert await books.held() == 16
    books.shell.pods.remove(pods[0])
    await books.keeper.settle()
    (live,) = await books.ledger.charges()
    assert (live.charge.gang.name, live.charge.leaf_count) == ("b", 8)


async def test_a_forged_member_raises_the_charge_of_its_gang_for_seconds_only() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    clock.ago = timedelta(minutes=2)
    charge = gang_charge("g", decision=decision)
    await books.ledger.charge(charge)
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    await books.keeper.settle()
    clock.ago = timedelta()
    await books.ledger.resize(charge, 4000)
    await prove_later(books, clock, seconds=9)
    assert await books.held() == 4000  # its pods may be on their way
    await prove_later(books, clock, seconds=2)
    assert await books.held() == 16
    assert books.shell.drift("ledger-corrected") == 1


async def test_a_gang_that_is_not_whole_pays_for_no_forged_member_either() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    charge = gang_charge("g", decision=decision)
    await books.ledger.charge(charge)
    books.shell.pods.upsert(member("a", decision))
    await books.keeper.settle()
    await books.ledger.resize(charge, 4000)
    await prove_later(books, clock, seconds=11)
    assert await books.held() == 16  # the other one may ask for as much


async def test_a_forged_first_member_is_forgotten_when_the_real_ones_are_there() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    forged = replace(gang_charge("g", decision=decision), leaf_count=4000)
    await books.ledger.charge(forged)
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    await books.keeper.settle()
    await prove_later(books, clock, seconds=11)
    assert await books.held() == 16


async def test_members_that_are_larger_keep_what_their_gang_grew_by() -> None:
    clock = Later()
    books, decision = Books(clock), uuid4()
    charge = replace(gang_charge("g", decision=decision), leaf_count=2)
    await books.ledger.charge(charge)
    await books.ledger.resize(charge, 5)
    books.shell.pods.upsert(member("b", decision).with_gpus(4))
    await books.keeper.settle()
    await prove_later(books, clock, seconds=11)
    assert await books.held() == 5
    books.shell.pods.upsert(member("a", decision).with_gpus(1))
    await prove_later(books, clock, seconds=1)
    assert await books.held() == 5


async def test_what_was_let_in_without_the_ledger_does_not_expire_while_it_runs() -> None:
    """The leader saw the pods, and confirmed nothing, before the ledger was told of them."""
    books, decision = Books(), uuid4()
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision))
    await books.keeper.settle()
    assert books.keeper.compares_soon
    await books.ledger.charge(gang_charge("g", decision=decision))
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert live.expires_at is None
    assert not books.keeper.compares_soon


async def test_a_gang_that_was_decided_without_a_slow_ledger_is_charged_in_its_own_class() -> None:
    books, decision = Books(), uuid4()
    await books.ledger.charge(gang_charge("g", decision=decision))
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision).of_class("oppo"))
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert (live.charge.class_name, live.charge.is_high) == ("oppo", False)
    assert (live.charge.decision, await books.held()) == (decision, 16)


def open_member(name: str, decision: UUID) -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_vc("lab").in_native_gang("g").of_class("prod")
    return pod.submitted_by("alice").annotated(marks.DECISION_ANNOTATION, str(decision))


async def test_who_comes_in_the_stead_of_a_member_that_ended_finds_room() -> None:
    books, decision = Books(a_while_ago), uuid4()
    limit = Limit(scope=Scope(UserName("alice")), measure=Measure.LEAF_CELLS, most=16)
    charge = replace(gang_charge("g", decision=decision), places=0)
    await books.ledger.charge(charge)
    for name in ("a", "b"):
        books.shell.pods.upsert(open_member(name, decision))
    books.shell.pods.remove(open_member("b", decision))
    for seconds, held in [(0, 16), (9, 16), (10, 8)]:
        books.seconds = seconds
        assert books.keeper.compares_soon
        await books.keeper.compare()
        assert await books.held() == held
    (live,) = await books.ledger.charges()
    assert isinstance(await books.ledger.join(live.charge, 8, limits=[limit]), Charged)
    assert await books.held() == 16


async def test_members_that_are_still_to_come_stay_paid_for() -> None:
    books, decision = Books(a_while_ago), uuid4()
    await books.ledger.charge(replace(gang_charge("g", decision=decision), places=1))
    books.shell.pods.upsert(open_member("a", decision))
    for seconds in (0, 60):
        books.seconds = seconds
        await books.keeper.compare()
    assert await books.held() == 16


# -- gangs beyond quota


async def test_the_ledger_has_the_class_of_a_raised_gang_until_its_pods_state_it() -> None:
    books, decision = Books(), uuid4()
    lowered = gang_charge("g", decision=decision)
    lowered = replace(lowered, class_name=ClassName("oppo"), rises_to=ClassName("prod"))
    await books.ledger.charge(lowered)
    for name in ("a", "b"):
        books.shell.pods.upsert(member(name, decision).of_class("oppo"))
    term = LeaderTerm(leadership=LEADERSHIP, epoch=1)
    await books.ledger.raise_class(lowered, ClassName("prod"), is_high=True, term=term)
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert (live.charge.class_name, live.charge.raised_from) == ("prod", "oppo")


async def test_what_the_ledger_lost_is_charged_beyond_quota_again() -> None:
    books, decision = Books(), uuid4()
    for name in ("a", "b"):
        pod = member(name, decision).of_class("oppo")
        books.shell.pods.upsert(pod.annotated(marks.OVER_QUOTA_ANNOTATION, "prod"))
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    assert (live.charge.class_name, live.charge.rises_to) == ("oppo", "prod")


async def test_what_the_ledger_lost_of_a_raised_gang_is_charged_in_its_effective_class() -> None:
    books, decision = Books(), uuid4()
    for name in ("a", "b"):
        pod = member(name, decision).of_class("oppo")
        books.shell.pods.upsert(pod.annotated(marks.EFFECTIVE_CLASS_ANNOTATION, "prod"))
    await books.keeper.compare()
    (live,) = await books.ledger.charges()
    standing = (live.charge.class_name, live.charge.rises_to, live.charge.raised_from)
    assert standing == ("prod", None, "oppo")


async def test_the_end_of_a_gang_is_told_to_those_that_wait_for_its_quota() -> None:
    books, decision, freed = Books(), uuid4(), list[Scope]()
    books.keeper.on_freed.append(freed.extend)
    await books.ledger.charge(gang_charge("g", decision=decision))
    pod = member("a", decision).charged_to("vision")
    books.shell.pods.upsert(pod)
    await books.keeper.settle()
    assert freed == []
    books.shell.pods.remove(pod)
    await books.keeper.settle()
    assert Scope(None, GroupName("vision")) in freed
