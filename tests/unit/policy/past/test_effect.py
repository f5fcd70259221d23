"""What another policy would have decided about a day: each policy lives with its own decisions."""

import pytest

from policy.past.sentences import tell_effect
from tests.support.policy.past_days import DAY, TEAM, PastGangs, a_past_policy

NOTHING = a_past_policy()
FOUR_HIGH = '{priority: prod, occupiedHigh: "> 4", then: oppo}'


def test_the_same_policy_changes_nothing() -> None:
    gangs = PastGangs()
    for number in range(6):
        gangs.submit(at=number * 60.0, cells=4)
    effect = gangs.effect(NOTHING, NOTHING)
    assert (effect.is_none, effect.submissions, effect.idle_rules) == (True, 6, ())


def test_a_gang_that_is_lowered_holds_less_for_the_next_one() -> None:
    """With recorded usage all three later gangs would be lowered: alice held 4 high leaf cells."""
    gangs = PastGangs()
    gangs.submit(at=0.0, cells=4)
    gangs.submit(at=10.0, cells=4)
    gangs.submit(at=4000.0, cells=4)  # the first two have ended by then
    gangs.submit(at=4010.0, cells=1)
    effect = gangs.effect(NOTHING, a_past_policy(rules=FOUR_HIGH))
    assert effect.lowered == {"oppo": {"alice": 2}}
    lenient = a_past_policy(rules=FOUR_HIGH.replace("> 4", "> 8"))
    three = PastGangs()
    for at in (0.0, 1.0, 2.0, 3.0):
        three.submit(at=at, cells=4)
    # Two fit; the third is lowered and holds nothing in high classes, so the fourth is, too.
    assert three.effect(NOTHING, lenient).lowered == {"oppo": {"alice": 2}}


def test_what_ended_is_free_again_and_what_was_held_before_counts() -> None:
    rules = a_past_policy(rules=FOUR_HIGH)
    gangs = PastGangs()
    gangs.hold("alice", since=-500.0, until=100.0, cells=4)
    gangs.hold("bob", since=-500.0, until=None, cells=4)
    gangs.submit("alice", at=50.0)
    gangs.submit("alice", at=150.0)
    gangs.submit("bob", at=DAY - 1.0)
    assert gangs.effect(NOTHING, rules).lowered == {"oppo": {"alice": 1, "bob": 1}}


@pytest.mark.parametrize(("over", "field"), [("fail", "refused"), ("queue", "queued")])
def test_quotas_refuse_or_let_wait(over: str, field: str) -> None:
    gangs = PastGangs()
    for at in (0.0, 1.0, 2.0):
        gangs.submit("bob", at=at, cells=4)
    effect = gangs.effect(NOTHING, a_past_policy(quotas=TEAM % over))
    assert getattr(effect, field) == {"bob": 1}


def test_a_gang_that_waits_for_quota_holds_once_there_is_room() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, cells=8, held=100.0)
    gangs.submit(at=1.0, cells=8, held=100.0)  # waits until 100, holds until 200
    gangs.submit(at=150.0, cells=1)
    gangs.submit(at=250.0, cells=1)
    effect = gangs.effect(NOTHING, a_past_policy(quotas=TEAM % "queue"))
    assert effect.queued == {"alice": 2}


def test_what_quotas_lower_uses_up_no_quota() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, cells=9)
    gangs.submit("bob", at=1.0, cells=8)
    effect = gangs.effect(NOTHING, a_past_policy(quotas=TEAM % "oppo"))
    assert effect.lowered == {"oppo": {"alice": 1}}


def test_hours_count_from_the_beginning_of_the_day() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, cells=4, held=7200.0)
    gangs.submit(at=1000.0, cells=1)
    gangs.submit(at=7300.0, cells=1)
    hours = "{name: team, limits: {leafCellHours: {day: 4}}, over: fail, users: [{name: alice}]}"
    assert gangs.effect(NOTHING, a_past_policy(quotas=hours)).refused == {"alice": 1}


def test_the_other_direction_is_told_as_well() -> None:
    strict = a_past_policy(rules="{user: bob, then: fail}, {user: alice, then: oppo}")
    gangs = PastGangs()
    gangs.submit("alice", at=0.0)
    gangs.submit("bob", at=1.0, outcome="refused")
    effect = gangs.effect(strict, NOTHING)
    assert (effect.raised, effect.admitted) == ({"prod": {"alice": 1}}, {"bob": 1})


def test_a_refused_gang_that_was_submitted_again_counts_once() -> None:
    gangs = PastGangs()
    for at in (0.0, 60.0, 120.0):
        gangs.submit(at=at, outcome="refused", name="lab/job")
    gangs.submit(at=180.0, name="lab/job")
    gangs.submit(at=40_000.0, outcome="refused", name="lab/job")
    assert [gang.at for gang in gangs.day(NOTHING).gangs] == [180.0, 40_000.0]


def test_members_that_grow_a_gang_and_helpers_are_no_submissions() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, inputs={"held": {}}, outcome="refused")
    gangs.submit(at=1.0, inputs={"isHelper": True})
    gangs.submit(at=2.0, cells=0)
    assert gangs.day(NOTHING).gangs == []


def test_rows_of_earlier_versions_are_counted_and_not_played() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0)
    first = gangs.rows[0]
    gangs.rows.append(
        type(first)(
            at=1.0,
            subject="lab/old",
            outcome="admitted",
            details=first.details,
            inputs={"usage": [0, 0]},
        )
    )
    effect = gangs.effect(NOTHING, a_past_policy(rules="{then: oppo}"))
    assert (effect.submissions, effect.older) == (1, 1)
    assert "1 submission logged by an earlier version" in tell_effect(effect)[-1]


def test_the_time_of_gangs_that_never_ran_is_the_usual_one_of_their_user() -> None:
    gangs = PastGangs()
    for number in range(5):
        gangs.submit("alice", at=number * 1.0, held=600.0)
        gangs.submit("bob", at=number * 1.0, held=60.0)
    gangs.submit("alice", at=50.0, outcome="refused")
    gangs.submit("carol", at=51.0, outcome="refused")
    last = gangs.day(NOTHING).gangs[-2:]
    assert [(one.held_seconds, one.is_assumed) for one in last] == [(600.0, True), (330.0, True)]


def test_a_gang_that_was_resized_is_held_from_its_first_charge_to_its_last() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, held=100.0)
    decision = gangs.charges[0].charge.decision
    gangs.hold("alice", since=100.0, until=500.0, cells=2, decision=decision)
    assert gangs.day(NOTHING).gangs[0].held_seconds == 500.0


def test_groups_of_the_identity_document_change_with_it() -> None:
    rules = "{group: guests, then: oppo}"
    before = a_past_policy(rules=rules, identity="groups: {guests: [bob]}")
    after = a_past_policy(rules=rules, identity="groups: {guests: [alice]}")
    gangs = PastGangs()
    gangs.submit("alice", at=0.0, inputs={"groups": ["staff"]})
    gangs.submit("bob", at=1.0, inputs={"groups": ["guests", "staff"]})
    effect = gangs.effect(before, after)
    assert (effect.lowered, effect.raised) == ({"oppo": {"alice": 1}}, {"prod": {"bob": 1}})


def test_a_vc_that_is_closed_and_a_class_that_is_gone_refuse() -> None:
    gangs = PastGangs()
    gangs.submit("alice", at=0.0)
    gangs.submit("bob", at=1.0)
    closed = a_past_policy(identity="vcs: {default: {users: [bob]}}")
    assert gangs.effect(NOTHING, closed).refused == {"alice": 1}


def test_only_new_rules_without_effect_are_named() -> None:
    old = "{user: zed, then: fail}"
    before = a_past_policy(rules=old)
    after = a_past_policy(rules=f"{old}, {{user: yves, then: fail}}, {{user: alice, then: oppo}}")
    gangs = PastGangs()
    gangs.submit("alice", at=0.0)
    assert gangs.effect(before, after).idle_rules == (2,)


def test_a_play_can_be_ended() -> None:
    from policy.past.effect import find_effect

    gangs = PastGangs()
    gangs.submit(at=0.0)
    day = gangs.day(NOTHING)
    assert find_effect(day, before=NOTHING, after=NOTHING, may_go_on=lambda: False) is None


def test_the_sentences() -> None:
    gangs = PastGangs()
    for number in range(7):
        gangs.submit("alice", at=number * 5000.0, cells=5)
    for number in range(2):
        gangs.submit("bob", at=number * 5000.0, cells=5)
    gangs.submit("mallory", at=60_000.0)
    rules = f"{{user: mallory, then: fail}}, {FOUR_HIGH}, {{user: zed, then: fail}}"
    told = tell_effect(gangs.effect(NOTHING, a_past_policy(rules=rules)))
    over = "cellgate: over the last 24 h (10 submissions): "
    assert told == [
        f"{over}9 gangs more would have been lowered to oppo (alice 7, bob 2)",
        f"{over}1 gang more would have been refused (mallory 1)",
        f"{over}rule 3 would have had no effect",
        "cellgate: not known: how users would have reacted; later raises and hours used before "
        "are not counted",
    ]


def test_many_users_and_rules_are_counted() -> None:
    gangs = PastGangs()
    for number in range(6):
        gangs.submit(f"user-{number}", at=float(number), cells=5)
    rules = ", ".join(f"{{user: ^nobody-{number}$, then: fail}}" for number in range(10))
    told = tell_effect(gangs.effect(NOTHING, a_past_policy(rules=f"{FOUR_HIGH}, {rules}")))
    assert "(user-0 1, user-1 1, user-2 1, user-3 1 and 2 more users)" in told[0]
    assert "rules 2, 3, 4, 5, 6, 7, 8, 9 and 2 more would have had no effect" in told[1]
    assert all(len(line) <= 256 for line in told)


def test_a_day_without_submissions_says_so() -> None:
    told = tell_effect(PastGangs().effect(NOTHING, a_past_policy(rules=FOUR_HIGH)))
    assert told == ["cellgate: over the last 24 h, no submission is known to try it on"]


def test_no_change_says_so() -> None:
    gangs = PastGangs()
    gangs.submit(at=0.0, outcome="refused")
    told = tell_effect(gangs.effect(NOTHING, a_past_policy(quotas=TEAM % "fail")))
    assert told[0].endswith("(1 submission): no submission would have been decided otherwise")
    assert "how long 1 gang that never ran would hold leaf cells (1 h is assumed)" in told[1]
