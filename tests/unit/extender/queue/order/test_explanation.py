"""What users are told about their place adds up."""

from extender.queue.order.explanation import explain_ahead, explain_bound, explain_standing
from extender.queue.order.facts import QueueFacts
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import list_gangs
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
    listed = list_gangs((one, order.standing(one, now=0.0)) for one in gangs)
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


def test_users_are_told_where_no_bound_exists() -> None:
    order = GangOrder(queues(_DOCUMENT), CLASSES)
    guaranteed, opportunistic = facts(), facts(priority=-1)
    settled = "gangs that ask more than 168 h later are never ahead of it"
    assert explain_bound(order.standing(guaranteed, now=0), guaranteed, order.queues) == [
        settled,
        "no bound on the wait: `runTime.longest` does not say how long gangs run",
    ]
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
        assert told == [settled, *missing]
