"""Rules and quotas together: one decision, in words that people understand."""

from dataclasses import replace

import pytest

from policy.quotas.admission import AdmissionDecision, OverQuota, describe_excess, over_quota
from policy.quotas.limits import Exceeded, Limit, Measure, Scope
from policy.quotas.quota_table import QuotaGroup
from policy.rules.decision import Outcome
from policy.submission import GroupName, LeafType, Occupancy, UserName
from tests.support.policy.documents import CLASSES, OPPO, PROD, TEST, a_submission, rules_of

VISION = GroupName("vision")
OWN, SHARED = Scope(UserName("alice"), VISION), Scope(None, VISION)


def too_much(
    measure: Measure = Measure.LEAF_CELLS_HIGH,
    *,
    used: float = 15,
    asked: int = 4,
    most: float = 16,
) -> Exceeded:
    limit = Limit(scope=OWN, measure=measure, most=most)
    return Exceeded(limit=limit, used=used, asked=asked)


def _admission(
    over: str, *, rules: str = "- {user: x, then: fail}", asks: str = "prod"
) -> AdmissionDecision:
    decision = rules_of(rules).decide(
        a_submission(asks=4, class_name=asks),
        usage=Occupancy(occupied=15, occupied_high=15),
        classes=CLASSES,
    )
    group = QuotaGroup(name=VISION, over=over)
    return AdmissionDecision(
        rules=decision, quota=over_quota(decision, group, (too_much(),), classes=CLASSES)
    )


def test_over_quota_the_group_chooses() -> None:
    assert (_admission("fail").outcome, _admission("fail").final_class) == (Outcome.REFUSED, PROD)
    assert (_admission("queue").outcome, _admission("queue").final_class) == (Outcome.QUEUED, PROD)
    lowered = _admission("oppo")
    assert (lowered.outcome, lowered.final_class) == (Outcome.ADMITTED, OPPO)
    assert lowered.is_lowered
    assert lowered.quota == OverQuota(
        group=VISION,
        outcome=Outcome.ADMITTED,
        exceeded=(too_much(),),
        class_before=PROD,
        class_after=OPPO,
    )


def test_a_class_is_never_raised() -> None:
    kept = _admission("test", asks="oppo")
    assert (kept.outcome, kept.final_class, kept.is_lowered) == (Outcome.ADMITTED, OPPO, False)
    assert kept.format_warnings() == ()
    assert kept.explain()[0] == (
        "alice asked for 4 leaf cells in class oppo and gets it, beyond the quotas of group vision."
    )


def test_quotas_take_up_where_rules_ended() -> None:
    lowered = _admission("oppo", rules="- {priority: prod, then: test, note: prod is for admins}")
    assert lowered.format_warnings() == (
        "cellgate: rule 1 lowers class prod to test: prod is for admins",
        "cellgate: quotas of group vision lower class test to oppo: alice in group vision holds 15 "
        "leaf cells in high classes and 4 more are asked for; the limit is 16; it rises to test "
        "once the quotas have room",
    )
    assert lowered.explain() == (
        "alice asked for 4 leaf cells in class prod and gets class oppo.",
        "alice holds 15 leaf cells, 15 of them in high classes.",
        "Rule 1 (prod is for admins) lowers class prod to test. "
        "It applies to class prod, regardless of what is asked for or held.",
        "Over quota, class test is lowered to oppo: alice in group vision holds 15 leaf cells in "
        "high classes and 4 more are asked for; the limit is 16. A gang of 1 leaf cell would fit.",
    )
    assert lowered.final_class is not TEST


def test_a_refusal_tells_every_rule_hit_and_every_limit() -> None:
    refused = _admission("fail", rules="- {priority: prod, then: test, note: prod is for admins}")
    assert refused.format_refusal() == (
        "alice asked for 4 leaf cells in class prod: refused by the quotas of group vision. "
        "Rule 1 (prod is for admins) lowers class prod to test. "
        "It applies to class prod, regardless of what is asked for or held. "
        "alice in group vision holds 15 leaf cells in high classes and 4 more are asked for; the "
        "limit is 16. A gang of 1 leaf cell would fit."
    )
    assert refused.format_warnings() == ()


def test_a_refusal_by_usage_that_is_not_current_says_so() -> None:
    away = ("Quota database unavailable; last known usage applied",)
    for refused in (_admission("fail"), _admission("fail", rules="- {user: alice, then: fail}")):
        text = replace(refused, notes=away).format_refusal()
        assert text.endswith(" Quota database unavailable; last known usage applied.")


def test_a_gang_that_waits_is_told_what_for() -> None:
    assert _admission("queue").format_warnings() == (
        "cellgate: waits for room in the quotas of group vision: alice in group vision holds 15 "
        "leaf cells in high classes and 4 more are asked for; the limit is 16",
    )


def test_notes_are_told_too() -> None:
    decision = rules_of("- {then: retain}").decide(a_submission(), usage=None, classes=CLASSES)
    noted = AdmissionDecision(rules=decision, notes=("the ledger does not answer",))
    assert noted.format_warnings() == ("cellgate: the ledger does not answer",)
    assert noted.explain()[-1] == "the ledger does not answer"
    assert noted.outcome is Outcome.ADMITTED


@pytest.mark.parametrize(
    ("exceeded", "words"),
    [
        (
            too_much(Measure.LEAF_CELLS, used=16, asked=1),
            "alice in group vision holds 16 leaf cells and 1 more is asked for; the limit is 16. "
            "It would fit once 1 leaf cell is free again.",
        ),
        (
            too_much(Measure.LEAF_CELLS, used=16, asked=17),
            "alice in group vision holds 16 leaf cells and 17 more are asked for; the limit is 16.",
        ),
        (
            too_much(Measure.GANGS, used=1, asked=1, most=1),
            "alice in group vision has 1 gang; the limit is 1. It would fit once 1 gang has ended.",
        ),
        (
            too_much(Measure.GANGS, used=3, asked=1, most=2),
            "alice in group vision has 3 gangs; the limit is 2. It would fit once 2 gangs have "
            "ended.",
        ),
        (
            too_much(Measure.GANGS, used=0, asked=1, most=0),
            "alice in group vision has 0 gangs; the limit is 0.",
        ),
        (
            too_much(Measure.HOURS_MONTH, used=9000.26, asked=0, most=9000),
            "alice in group vision used 9000.3 leaf-cell-hours this month; the limit is 9000 "
            "a month. It would fit in the next month (UTC).",
        ),
        (
            too_much(Measure.HOURS_TOTAL, used=9000.26, asked=0, most=9000),
            "alice in group vision used 9000.3 leaf-cell-hours in total; the limit is 9000. "
            "An admin can raise the limit.",
        ),
        (
            too_much(Measure.CPU_MILLIS, used=6000, asked=4500, most=8000),
            "alice in group vision holds 6 CPUs and the gang asks for 4.5 CPUs more; the limit is "
            "8 CPUs. A gang with 2 CPUs would fit.",
        ),
        (
            too_much(Measure.MEMORY_BYTES, used=2**36, asked=2**30, most=2**36),
            "alice in group vision holds 64Gi of memory and the gang asks for 1Gi of memory "
            "more; the limit is 64Gi of memory.",
        ),
        (
            Exceeded(
                limit=Limit(
                    scope=SHARED,
                    measure=Measure.LEAF_CELLS_OF_TYPE,
                    most=16,
                    leaf_type=LeafType("A100"),
                ),
                used=14,
                asked=4,
            ),
            "Group vision holds 14 leaf cells of type A100 and 4 more are asked for; the limit is "
            "16. A gang of 2 leaf cells would fit.",
        ),
    ],
)
def test_a_limit_is_told_with_its_numbers_and_what_would_help(
    exceeded: Exceeded, words: str
) -> None:
    assert describe_excess(exceeded) == words
