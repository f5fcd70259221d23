"""What users are told about their place adds up."""

from dataclasses import replace

from extender.cells.views.listings import run_to_end
from extender.inspection.queue.queue_view import show_standing
from extender.queue.order.explanation import explain_ahead, explain_bound, explain_standing
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import list_gangs
from extender.queue.order.standing import SwapState
from policy.queues.holds import HoldRole
from policy.queues.swaps import SwapRequest
from tests.support.queue.orders import CLASSES, DAY, HOUR, facts, one_level, queues

_DOCUMENT = """
levels:
- {name: urgent, who: {users: [root]}, strategy: fifo}
- name: batch
  strategy: formula
  worth: {class: 24h, userLevel: 4h, groupLevel: 2h, fairShare: 48h, shortRun: 8h, smallGang: 1h,
          asked: 6h, fill: 1h}
  promoteAfter: 7d
userLevels: {gold: [alice]}
"""


def _explain(order: GangOrder, of: QueueFacts, *, now: float = 0.0) -> list[str]:
    return explain_standing(order.standing(of, now=now), of, order.queues)


def test_a_gang_without_a_group_is_not_said_to_have_one() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    told = _explain(order, facts(class_name="prod", group=None))
    assert "no group is charged for it: the level of a group is worth 0 s of at most 2 h" in told


def test_the_parts_of_a_rank_are_named_with_their_seconds() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    order.shares.observe_capacity(8)
    order.shares.add("alice", "vision", leaf_cell_seconds=8 * 7 * DAY, at=0.0)
    order.shares.refresh_group("vision", now=0.0)
    told = _explain(order, facts(class_name="prod", run=6 * HOUR, limit=12 * HOUR))
    assert told == [
        "it is in level batch",
        "its rank is when it asked, minus 68 h 24 min in all",
        "class prod is worth 24 h of at most 24 h",
        "the level of user alice is worth 4 h of at most 4 h",
        "the level of group vision is worth 0 s of at most 2 h",
        "recent use of alice costs 16 h 36 min: 31 h 24 min of at most 48 h are left",
        "an expected run of 6 h is worth 6 h of at most 8 h",
        "asking for 8 leaf cells is worth 0 s of at most 1 h",
        "asking for a limit of 12 h is worth 3 h of at most 6 h",
        "the use of VC lab is worth 0 s of at most 1 h",
    ]


def test_a_gang_of_a_level_that_has_just_been_removed_is_told_so() -> None:
    """Thousands of gangs are ranked anew in steps, and are shown meanwhile."""
    gang = facts(class_name="prod")
    standing = GangOrder(queues(_DOCUMENT), CLASSES).standing(gang, now=0)
    changed = queues("levels: [{name: all, strategy: fifo}]")
    assert explain_standing(standing, gang, changed)
    (told,) = explain_bound(standing, gang, changed)
    assert told.startswith("the Queues document has changed")


def test_a_formula_is_told_with_the_factors_that_it_reads() -> None:
    level = "{name: a, strategy: formula, worth: {class: 24h, shortRun: 8h}, formula: "
    text = f"levels: [{level}'worth.class * class + worth.shortRun * shortRun * shortRun'}}]"
    order = GangOrder(queues(text), CLASSES)
    gang = facts(class_name="prod", run=6 * HOUR)
    assert _explain(order, gang)[-1] == (
        "the formula of the level gives 28 h 30 min of at most 32 h, from class 1, shortRun 0.75"
    )
    (part,) = order.standing(gang, now=0.0).parts
    assert dict(part.factors) == {"class": 1.0, "shortRun": 0.75}


def test_a_gang_that_was_swapped_is_ranked_by_when_the_other_one_asked() -> None:
    order, own, other = GangOrder(one_level("fifo"), CLASSES), facts("a"), facts("b", asked=9.0)
    request = SwapRequest(other=other.gang, user="alice", role=HoldRole.OWNER, at=0.0)
    for place, told in ((other, "its rank is when that gang asked"), (None, "its rank is when it")):
        standing = replace(
            order.standing(own, now=0.0),
            swap=SwapState(request=request, place=place, why_not="held"),
        )
        assert explain_standing(standing, own, order.queues)[1].startswith(told)


def test_a_promoted_gang_is_told_so() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    assert _explain(order, facts(), now=7 * DAY) == [
        "it has waited long enough in level batch to be ranked in level urgent",
        "its rank is when it asked",
    ]


def test_a_gang_is_told_which_gang_of_its_pool_is_ahead_and_by_how_much() -> None:
    order = GangOrder(one_level("priority"), CLASSES)
    gangs = [
        facts("bert-7", asked=0.0),
        facts("other", asked=HOUR, vc="free"),
        facts("bert-8", asked=2 * HOUR),
    ]
    listed = run_to_end(list_gangs((one, order.standing(one, now=0.0)) for one in gangs))
    last = listed[gangs[2].gang]
    assert (last.place, last.length, last.level_place, last.pool_place) == (3, 3, 3, 2)
    assert last.ahead is not None
    assert explain_ahead(last.standing, last.ahead[1], name="ns/bert-7") == (
        "ns/bert-7 is ahead by 2 h"
    )
    assert listed[gangs[1].gang].ahead is None


def test_a_gang_of_an_upper_level_is_ahead_by_its_level() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    behind, ahead = (order.standing(facts(user=user), now=0.0) for user in ("alice", "root"))
    assert explain_ahead(behind, ahead, name="x") == "x is ahead: it is in level urgent"
    listed = run_to_end(
        list_gangs(
            (one, order.standing(one, now=0.0)) for one in (facts("a", user="root"), facts())
        )
    )
    shown = show_standing(listed[facts().gang], order.queues, awaits_quota=False)
    assert shown["ahead"] == {"gang": "ns/a", "level": "urgent"}, "ranks of levels say nothing"


def test_gangs_of_one_rank_are_told_what_decides() -> None:
    """Pods are created at whole seconds: many gangs ask in the same one."""
    order = GangOrder(one_level("priority"), CLASSES)
    gangs = [facts("bert-7", asked=5.0), facts("bert-8", asked=5.0)]
    ahead, behind = (order.standing(one, now=9.0) for one in gangs)
    assert explain_ahead(behind, ahead, name="ns/bert-7") == (
        "ns/bert-7 is ahead: both have the same rank and asked at the same time, and of these "
        "gangs the order of names decides"
    )
    later = order.standing(facts(class_name="prod", asked=9.0 + 6.6 * DAY), now=9.0)
    assert explain_ahead(later, replace(later, asked=later.rank, parts=()), name="x") == (
        "x is ahead: both have the same rank, and it asked earlier"
    )


def test_a_gang_that_did_not_use_its_places_is_told_why_it_is_behind() -> None:
    order = GangOrder(one_level("priority"), CLASSES)
    behind, ahead = (order.standing(facts(asked=asked), now=9.0) for asked in (1.0, 2.0))
    assert explain_ahead(behind, ahead, name="x").startswith("x is ahead once: this gang did not")


def test_a_gang_whose_factors_are_worth_nothing_is_ranked_by_when_it_asked() -> None:
    order = GangOrder(one_level("priority"), CLASSES)
    assert _explain(order, facts(class_name="oppo")) == [
        "its rank is when it asked",
        "class oppo is worth 0 s of at most 168 h",
    ]


def test_a_formula_that_fails_for_a_gang_is_told() -> None:
    level = "{name: a, strategy: formula, worth: {class: 1h}, formula: '1.0 / (class - 0.5)'}"
    order = GangOrder(queues(f"levels: [{level}]"), CLASSES)
    assert "the formula of the level cannot be evaluated for it: its result is not a finite " + (
        "number"
    ) in _explain(order, facts(class_name="test"))


def test_users_are_told_where_no_bound_exists() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    guaranteed, opportunistic = facts(), facts(priority=-1)
    settled = "gangs that ask more than 168 h later are never ahead of it"
    unlimited = (
        "no bound on the wait: `runTime.longest` has no `default`: not all runs have a limit"
    )
    preempted = (
        "no bound on the wait while gangs of a higher class preempt in VC lab: reservations do "
        "not keep them off"
    )
    assert explain_bound(order.standing(guaranteed, now=0), guaranteed, order.queues) == [
        settled,
        unlimited,
        preempted,
    ]
    limited = queues(f"{_DOCUMENT}runTime: {{longest: {{test: 7d}}, enforce: true}}")
    told = explain_bound(order.standing(guaranteed, now=0), guaranteed, limited)
    assert told == [settled, unlimited, preempted], "it waits for gangs of other classes, too"
    assert explain_bound(order.standing(opportunistic, now=0), opportunistic, order.queues) == [
        settled,
        "no bound on the wait: an opportunistic gang starts when promised cells are not used",
    ]
    for enforce, missing in (
        ("false", ["no bound on the wait: `runTime.longest` is assumed and not enforced"]),
        ("true", []),
    ):
        text = f"{_DOCUMENT}runTime: {{longest: {{default: 7d}}, enforce: {enforce}}}"
        document = queues(text)
        told = explain_bound(order.standing(guaranteed, now=0), guaranteed, document)
        assert told == [settled, *missing, preempted]
        highest = facts(priority=1000)
        told = explain_bound(order.standing(highest, now=0), highest, document)
        assert told == [settled, *missing]


def test_a_gang_that_waits_for_quota_is_told_that_others_are_charged_meanwhile() -> None:
    order = GangOrder(one_level("fifo"), CLASSES)
    standing = order.standing(facts(), now=0)
    assert explain_bound(standing, facts(), order.queues, awaits_quota=True) == [
        "no bound on the wait for quota: gangs for which the limits have room are charged "
        "meanwhile, also if they ask later"
    ]


def test_thousands_of_gangs_are_listed_in_pieces() -> None:
    order = GangOrder(one_level("priority"), CLASSES)
    gangs = [facts(f"gang-{number}", asked=float(number)) for number in range(1000)]
    steps = list_gangs((one, order.standing(one, now=0.0)) for one in gangs)
    assert sum(1 for _ in steps) == 10
