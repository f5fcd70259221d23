"""Decide and charge: one decision per gang, never over a limit, never refused by a stale number."""

import asyncio

import pytest

from policy.admission.charge_request import build_charge
from policy.admission.gang_decision import GangDecision
from policy.errors import RequestError
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import ClassName, GroupName, UserName
from tests.support.state.charges import TERM
from tests.support.webhook.admission_world import AdmissionWorld, StaleUsage, a_policy

ALICE = Scope(UserName("alice"))
VISION = """groups:
- name: vision
  limits: {leafCells: 20, leafCellsHigh: 10, gangs: 15, byLeafType: {A100: 4}}
  over: %s
  users: [{name: alice}, {name: bob, limits: {leafCells: 6}}]
"""


def _got(decision: GangDecision) -> tuple[str, str]:
    return str(decision.outcome), str(decision.final_class)


async def _held(world: AdmissionWorld, scope: Scope = ALICE) -> tuple[int, int, int]:
    usage = await world.ledger.usage(scope)
    return usage.leaf_cells, usage.leaf_cells_high, usage.gangs


async def test_what_is_let_in_is_charged_once_in_its_final_class() -> None:
    world = AdmissionWorld(a_policy(rules="- {priority: prod, then: oppo}"))
    request = world.ask(cells=4)
    assert _got(await world.replica().admit(request)) == ("admitted", "oppo")
    assert _got(await world.replica().admit(request)) == ("admitted", "oppo")
    assert await _held(world) == (4, 0, 1)


async def test_what_is_refused_is_not_charged() -> None:
    world = AdmissionWorld(a_policy(rules="- {current: '> 3', then: fail, note: too large}"))
    refused = await world.replica().admit(world.ask(cells=4))
    assert refused.outcome is Outcome.REFUSED
    assert "Rule 1 (too large) refuses class prod" in refused.admission.format_refusal()
    assert await _held(world) == (0, 0, 0)


async def test_a_review_that_comes_again_does_not_make_the_ledger_seem_away() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 6', then: fail}"))
    breaker = world.breaker()
    replica = world.replica(StaleUsage(world, leaf_cells=1000), breaker=breaker)
    request = world.ask(cells=3, size=3)
    answers = [await replica.admit(request) for _ in range(2)]
    assert [(one.decision_id, one.outcome) for one in answers] == [
        (request.decision, Outcome.ADMITTED)
    ] * 2
    assert breaker.is_closed
    assert await _held(world) == (3, 3, 1)


@pytest.mark.parametrize("stale_cells", [0, 1000], ids=["nothing held", "much held"])
async def test_numbers_of_yesterday_neither_let_in_nor_refuse(stale_cells: int) -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 6', then: fail}"))
    replica = world.replica(StaleUsage(world, leaf_cells=stale_cells))
    for gang, expected in [("a", "admitted"), ("b", "admitted"), ("c", "refused")]:
        assert _got(await replica.admit(world.ask(gang, cells=3)))[0] == expected
    assert await _held(world) == (6, 6, 2)


@pytest.mark.parametrize(
    "rules",
    [
        "- {priority: prod, occupiedHigh: '> 7', then: oppo}\n- {occupied: '> 20', then: fail}",
        "- {priority: prod, when: 'occupiedHigh > 7', then: oppo}\n"
        "- {when: 'occupied > 20', then: fail}",
    ],
    ids=["comparisons", "expressions"],
)
async def test_rules_hold_to_the_last_cell_however_many_ask_at_once(rules: str) -> None:
    world = AdmissionWorld(a_policy(rules=rules))
    stale = [world.replica(StaleUsage(world, leaf_cells=0)) for _ in range(3)]
    requests = [world.ask(f"gang-{number}") for number in range(60)]
    decisions = await asyncio.gather(
        *(stale[number % 3].admit(request) for number, request in enumerate(requests))
    )
    assert sorted(map(_got, decisions)).count(("admitted", "prod")) == 7
    assert sorted(map(_got, decisions)).count(("admitted", "oppo")) == 13
    assert await _held(world) == (20, 7, 20)


async def test_all_members_of_a_gang_get_what_the_first_got() -> None:
    world = AdmissionWorld(a_policy(rules="- {priority: prod, occupied: '> 8', then: oppo}"))
    first = await world.replica().admit(world.ask(cells=8, size=4))
    await world.replica().admit(world.ask("other", cells=8))
    for _ in range(3):
        member = await world.replica().admit(world.ask(cells=8, size=4))
        assert (_got(member), member.decision_id) == (("admitted", "prod"), first.decision_id)
    assert await _held(world) == (16, 8, 2)


async def test_a_gang_that_was_lowered_stays_lowered_and_says_so() -> None:
    world = AdmissionWorld(a_policy(rules="- {occupied: '> 4', then: oppo}"))
    await world.replica().admit(world.ask("big", cells=4))
    first = await world.replica().admit(world.ask(cells=4, size=2))
    await world.ledger.release([world.ask("big").submission.gang], term=TERM)
    second = await world.replica().admit(world.ask(cells=4, size=2))
    assert _got(first) == _got(second) == ("admitted", "oppo")
    assert second.format_warnings() == (
        "cellgate: gang lab/bert has class oppo instead of class prod by decision "
        f"{first.decision_id}",
    )


async def test_a_member_is_not_refused_by_a_rule_that_came_later() -> None:
    world = AdmissionWorld()
    await world.replica().admit(world.ask(cells=8, size=2))
    world.policy = a_policy(rules="- {then: fail}")
    assert _got(await world.replica().admit(world.ask(cells=8, size=2))) == ("admitted", "prod")
    assert _got(await world.replica().admit(world.ask("new", cells=8, size=2)))[0] == "refused"


async def test_members_must_agree() -> None:
    world = AdmissionWorld()
    await world.replica().admit(world.ask(cells=8, size=2, leaf_type="V100"))
    with pytest.raises(RequestError) as raised:
        await world.replica().admit(
            world.ask(cells=16, size=2, user="bob", class_name="oppo", leaf_type="A100")
        )
    assert str(raised.value) == (
        "gang lab/bert already exists, and this pod has submitter bob instead of alice, class oppo "
        "instead of prod, leaf type A100 instead of V100, 16 leaf cells for the whole gang instead "
        "of 8: members of a gang must agree; its name can be reused once its pods have ended"
    )
    assert await _held(world) == (8, 8, 1)


async def test_members_that_ask_for_less_are_welcome_and_larger_ones_once_it_runs() -> None:
    world = AdmissionWorld()
    first = world.ask(cells=8, size=2)
    await world.replica().admit(first)
    assert _got(await world.replica().admit(world.ask(cells=2, size=2))) == ("admitted", "prod")
    with pytest.raises(RequestError, match="16 leaf cells for the whole gang instead of 8"):
        await world.replica().admit(world.ask(cells=16, size=2))
    await world.ledger.confirm([first.submission.gang], term=TERM)
    assert _got(await world.replica().admit(world.ask(cells=16, size=2))) == ("admitted", "prod")


async def test_a_name_cannot_be_used_again_for_more_before_it_is_released() -> None:
    world = AdmissionWorld()
    await world.replica().admit(world.ask(cells=1))
    await world.ledger.confirm([world.ask().submission.gang], term=TERM)
    with pytest.raises(RequestError, match="8 leaf cells for the whole gang instead of 1"):
        await world.replica().admit(world.ask(cells=8))


@pytest.mark.parametrize(
    ("over", "first", "second"),
    [
        ("fail", ("admitted", "prod"), ("refused", "prod")),
        ("queue", ("admitted", "prod"), ("queued", "prod")),
        ("oppo", ("admitted", "prod"), ("admitted", "oppo")),
    ],
)
async def test_over_quota_the_group_chooses(
    over: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % over))
    assert _got(await world.replica().admit(world.ask("a", cells=10))) == first
    assert _got(await world.replica().admit(world.ask("b", cells=1))) == second
    lowered = over == "oppo"
    assert await _held(world) == (10 + lowered, 10, 1 + lowered)


async def test_members_of_a_queued_gang_wait_together() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "queue"))
    replica = world.replica()
    await replica.admit(world.ask("a", cells=10))
    first = await replica.admit(world.ask("b", cells=4, size=2))
    await world.ledger.release([world.ask("a").submission.gang], term=TERM)
    second = await replica.admit(world.ask("b", cells=4, size=2))
    assert (_got(second), second.decision_id) == (("queued", "prod"), first.decision_id)
    assert second.format_warnings() == (
        f"cellgate: gang lab/b has class prod and waits for quota by decision {first.decision_id}",
    )
    assert await _held(world) == (0, 0, 0)
    await world.ledger.release([world.ask("b").submission.gang], term=TERM)
    smaller = await replica.admit(world.ask("b", cells=2, size=2))
    assert _got(smaller) == ("admitted", "prod")


async def test_limits_of_the_user_and_the_leaf_type_count_too() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "fail"))
    own = await world.replica().admit(world.ask(user="bob", cells=7, class_name="oppo"))
    of_type = await world.replica().admit(world.ask("x", cells=5, leaf_type="A100"))
    assert "bob in group vision holds 0 leaf cells" in own.admission.format_refusal()
    assert "of type A100 and 5 more are asked for; the limit is 4" in (
        of_type.admission.format_refusal()
    )


async def test_a_request_for_a_lower_class_does_not_get_less() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "oppo"))
    await world.replica().admit(world.ask("a", cells=20, class_name="oppo"))
    assert _got(await world.replica().admit(world.ask("b", class_name="oppo"))) == (
        "admitted",
        "oppo",
    )
    assert _got(await world.replica().admit(world.ask("c"))) == ("admitted", "oppo")


async def test_quotas_hold_to_the_last_gang_however_many_ask_at_once() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "fail"))
    replicas = [world.replica() for _ in range(3)]
    decisions = await asyncio.gather(
        *(replicas[n % 3].admit(world.ask(f"g{n}", class_name="oppo")) for n in range(100))
    )
    assert sum(decision.outcome is Outcome.ADMITTED for decision in decisions) == 15
    assert await _held(world, Scope(None, GroupName("vision"))) == (15, 0, 15)


async def test_a_preview_charges_nothing_and_tells_the_same() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "oppo"))
    preview = world.replica().preview(world.ask(cells=11))
    assert _got(preview) == ("admitted", "oppo")
    assert await _held(world) == (0, 0, 0)
    decided = await world.replica().admit(world.ask(cells=11))
    assert preview.format_warnings() == decided.format_warnings()


async def test_a_preview_does_not_take_a_gang_that_has_ended_for_one_of_today() -> None:
    world = AdmissionWorld()
    replica = world.replica()
    await replica.admit(world.ask(cells=8, size=2))
    await world.ledger.release([world.ask().submission.gang], term=TERM)
    again = world.ask(cells=8, size=2, user="bob", class_name="oppo")
    assert _got(replica.preview(again)) == ("admitted", "oppo")


class TestWithoutLedger:
    """The ledger is unavailable: the last known usage, and what was admitted since, decide."""

    async def test_own_admissions_are_counted(self) -> None:
        world = AdmissionWorld(a_policy(rules="- {occupied: '> 6', then: fail}"))
        await world.replica().admit(world.ask("before", cells=2))
        world.ledger.is_away = True
        replica = world.replica()
        outcomes = [
            (await replica.admit(world.ask(f"g{number}", cells=2))).outcome for number in range(4)
        ]
        assert outcomes == [Outcome.ADMITTED, Outcome.ADMITTED, Outcome.REFUSED, Outcome.REFUSED]
        assert [charge.leaf_count for charge in world.usage.assumed.unsent(9)] == [2, 2]

    async def test_every_answer_says_so(self) -> None:
        world = AdmissionWorld(a_policy(quotas=VISION % "oppo"))
        world.ledger.is_away = True
        decision = await world.replica().admit(world.ask(cells=11))
        assert _got(decision) == ("admitted", "oppo")
        assert decision.format_warnings()[-1] == (
            "cellgate: Quota database unavailable; last known usage applied"
        )

    async def test_a_preview_says_so_once_an_answer_had_to(self) -> None:
        world = AdmissionWorld()
        replica = world.replica()
        world.ledger.is_away = True
        await replica.admit(world.ask("other"))
        assert replica.preview(world.ask()).format_warnings() == (
            "cellgate: Quota database unavailable; last known usage applied",
        )
        world.usage.is_known = False
        assert replica.preview(world.ask()).format_warnings() == (
            "cellgate: Quota database unavailable and usage unknown; quotas not applied",
        )

    async def test_with_no_known_usage_rules_that_need_it_and_quotas_are_not_applied(self) -> None:
        world = AdmissionWorld(
            a_policy(rules="- {user: '^a', occupied: '> 0', then: fail}", quotas=VISION % "fail")
        )
        world.ledger.is_away = True
        world.usage.is_known = False
        decision = await world.replica().admit(world.ask(cells=100))
        assert _got(decision) == ("admitted", "prod")
        assert decision.format_warnings() == (
            "cellgate: Usage is not known at the moment, so rule 1 is not applied and class prod "
            "is kept.",
            "cellgate: Quota database unavailable and usage unknown; quotas not applied",
        )

    async def test_a_gang_that_was_decided_before_keeps_its_decision(self) -> None:
        world = AdmissionWorld(a_policy(rules="- {occupied: '> 8', then: oppo}"))
        replica = world.replica()
        first = await replica.admit(world.ask(cells=8, size=2))
        world.ledger.is_away = True
        again = await replica.admit(world.ask(cells=8, size=2))
        assert (_got(again), again.decision_id) == (("admitted", "prod"), first.decision_id)

    async def test_the_ledger_is_not_asked_again_before_it_was_seen_to_answer(self) -> None:
        world = AdmissionWorld()
        breaker = world.breaker()
        replica = world.replica(breaker=breaker)
        world.ledger.is_away = True
        await replica.admit(world.ask("a"))
        await breaker.attempt()
        world.ledger.is_away = False
        assert (
            "Quota database unavailable"
            in (await replica.admit(world.ask("b"))).format_warnings()[0]
        )
        await breaker.attempt()
        assert (await replica.admit(world.ask("c"))).format_warnings() == ()


async def test_a_member_of_a_queued_gang_waits_wherever_it_arrives() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "queue"))
    here, there = world.replica(), world.replica()
    await here.admit(world.ask("a", cells=10))
    first = await here.admit(world.ask("b", cells=4, size=2))
    await world.ledger.release([world.ask("a").submission.gang], term=TERM)
    second = await there.admit(world.ask("b", cells=4, size=2))
    assert (_got(second), second.decision_id) == (_got(first), first.decision_id)
    assert await world.ledger.charges() == ()


async def test_a_queued_gang_that_was_charged_meanwhile_waits_no_longer() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "queue"))
    replica = world.replica()
    await replica.admit(world.ask("a", cells=10))
    request = world.ask("b", cells=4, size=2)
    await replica.admit(request)
    await world.ledger.release([world.ask("a").submission.gang], term=TERM)
    await world.ledger.charge(build_charge(request, ClassName("prod")))
    late = await replica.admit(world.ask("b", cells=4, size=2))
    assert (_got(late), late.decision_id) == (("admitted", "prod"), request.decision)


async def test_a_gang_is_charged_for_members_that_ask_for_more_than_the_first() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "fail"))
    here, there = world.replica(), world.replica()
    first = await here.admit(world.member("b", own=1, size=3))
    larger = await there.admit(world.member("b", own=4, size=3))
    assert (larger.decision_id, larger.outcome) == (first.decision_id, first.outcome)
    assert (await _held(world))[0] == 6
    await here.admit(world.member("b", own=4, size=3))
    assert (await _held(world))[0] == 9


async def test_a_gang_does_not_outgrow_its_quota() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "queue"))
    replica = world.replica()
    await replica.admit(world.member("b", own=1, size=2))
    refused = await replica.admit(world.member("b", own=10, size=2))
    assert refused.outcome is Outcome.REFUSED
    assert refused.admission.format_refusal() == (
        "alice asked for 9 leaf cells in class prod: refused by the quotas of group vision. "
        "Group vision holds 2 leaf cells in high classes and 9 more are asked for; the limit is "
        "10. A gang of 8 leaf cells would fit."
    )
    assert (await _held(world))[0] == 2


async def test_members_of_many_replicas_outgrow_nothing_together() -> None:
    world = AdmissionWorld(a_policy(quotas=VISION % "fail"))
    replicas = [world.replica() for _ in range(3)]
    await replicas[0].admit(world.member("b", own=1, size=4))
    members = [world.member("b", own=3, size=4) for _ in range(3)]
    answers = await asyncio.gather(
        *(replica.admit(one) for replica, one in zip(replicas, members, strict=True))
    )
    assert [one.outcome for one in answers] == [Outcome.ADMITTED] * 3
    assert (await _held(world))[0] == 10
