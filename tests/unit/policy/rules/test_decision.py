"""Decisions in words: the same ones each time, complete, and short where they must be."""

import pytest

from policy.rules.decision import RuleDecision
from policy.submission import Occupancy
from tests.support.policy.documents import CLASSES, a_submission, rules_of


def _decide(
    rules: str,
    *,
    asks: int = 4,
    held: Occupancy | None,
    user: str = "alice",
    class_name: str = "prod",
) -> RuleDecision:
    submission = a_submission(user, asks=asks, class_name=class_name)
    return rules_of(rules).decide(submission, usage=held, classes=CLASSES)


HIGH = '- {user: ^a, priority: prod, occupiedHigh: "> 2", then: oppo, note: at most 2 high}'


def test_a_lowered_class_is_explained_with_who_which_rule_which_numbers_and_the_way_out() -> None:
    decision = _decide(HIGH, held=Occupancy(occupied=9, occupied_high=1))
    assert decision.explain() == (
        "alice asked for 4 leaf cells in class prod and gets class oppo.",
        "alice holds 9 leaf cells, 1 of them in high classes.",
        "Rule 1 (at most 2 high) lowers class prod to oppo: "
        "occupiedHigh would be 5 (1 held, 4 asked for), which is > 2. "
        "With 3 fewer leaf cells held or asked for in high classes the rule would not apply.",
    )
    assert decision.format_warnings() == (
        "cellgate: rule 1 lowers class prod to oppo because occupiedHigh would be 5 "
        "(1 held, 4 asked for), which is > 2: at most 2 high",
    )


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("- {user: bob, then: fail}", "No rule applied."),
        ("- {current: 0, then: retain}", "Rule 1 keeps class prod: current is 4, which is > 0."),
        (
            "- {then: fail}",
            "Rule 1 refuses class prod. "
            "It applies to all gangs, regardless of what is asked for or held.",
        ),
        (
            "- {when: current > 2, vc: def, then: fail}",
            "Rule 1 refuses class prod. It applies to vc def, when current > 2.",
        ),
        (
            "- {current: '>= 4', occupied: '> 1', then: fail}",
            "Rule 1 refuses class prod: current is 4, which is >= 4 and "
            "occupied would be 4 (0 held, 4 asked for), which is > 1. "
            "With 1 fewer leaf cell asked for the rule would not apply.",
        ),
        (
            "- {current: '== 4', then: fail}",
            "Rule 1 refuses class prod: current is 4, which is == 4.",
        ),
        (
            "- {current: '> 0', then: fail}",
            "Rule 1 refuses class prod: current is 4, which is > 0.",
        ),
    ],
)
def test_each_rule_hit_is_explained(rules: str, sentence: str) -> None:
    assert _decide(rules, held=Occupancy()).explain()[2:] == (sentence,)


def test_a_gang_lowered_out_of_the_high_classes_is_not_counted_among_them() -> None:
    rules = "- {priority: prod, then: oppo}\n- {occupiedHigh: 1, then: fail}"
    decision = _decide(rules, held=Occupancy(occupied=3, occupied_high=2))
    assert decision.explain()[-1] == (
        "Rule 2 refuses class oppo: occupiedHigh would be 2 (2 held), which is > 1. "
        "With 1 fewer leaf cell held or asked for in high classes the rule would not apply."
    )


def test_unknown_usage_is_told_to_the_user() -> None:
    decision = _decide(HIGH, held=None)
    assert decision.explain() == (
        "alice asked for 4 leaf cells in class prod and gets it.",
        "The usage of alice is not known at the moment.",
        "No rule applied.",
        "Usage is not known at the moment, so rule 1 is not applied and class prod is kept.",
    )
    assert decision.format_warnings() == (
        "cellgate: Usage is not known at the moment, "
        "so rule 1 is not applied and class prod is kept.",
    )


def test_a_when_that_failed_is_for_admins_not_for_users() -> None:
    decision = _decide("- {when: labels.a == 'b', then: fail}", held=Occupancy())
    assert decision.explain()[2:] == (
        "No rule applied.",
        'Rule 1 does not match: its `when` cannot be evaluated: there is no key "a".',
    )
    assert decision.format_warnings() == ()


def test_a_rule_that_keeps_the_class_is_a_reason_for_a_warning_only_if_it_has_a_note() -> None:
    lowered = (
        "cellgate: rule 1 lowers class prod to oppo because occupiedHigh would be 4 "
        "(0 held, 4 asked for), which is > 2: at most 2 high"
    )
    decision = _decide(f"{HIGH}\n- {{then: retain}}", held=Occupancy())
    assert decision.format_warnings() == (lowered,)
    noted = _decide(f"{HIGH}\n- {{then: retain, note: fine}}", held=Occupancy())
    assert noted.format_warnings() == (lowered, "cellgate: rule 2 keeps class oppo: fine")


def test_a_refusal_has_no_warnings_it_says_all_itself() -> None:
    decision = _decide(f"{HIGH}\n- {{then: fail, note: closed}}", held=Occupancy())
    assert decision.format_warnings() == ()
    assert decision.format_refusal() == (
        "alice asked for 4 leaf cells in class prod: refused by rule 2. "
        "alice holds 0 leaf cells, 0 of them in high classes. "
        "Rule 1 (at most 2 high) lowers class prod to oppo: "
        "occupiedHigh would be 4 (0 held, 4 asked for), which is > 2. "
        "With 2 fewer leaf cells held or asked for in high classes the rule would not apply. "
        "Rule 2 (closed) refuses class oppo. "
        "It applies to all gangs, regardless of what is asked for or held."
    )


def test_what_somebody_else_wrote_is_cleaned_and_cut() -> None:
    rules = f"- {{current: 0, then: oppo, note: {'x' * 400}}}"
    decision = _decide(rules, held=Occupancy(), user="eve\n\x1b[31m" + "e" * 200, asks=1)
    assert decision.explain()[0] == (
        f"eve ?[31m{'e' * 70}… asked for 1 leaf cell in class prod and gets class oppo."
    )
    (warning,) = decision.format_warnings()
    start = "cellgate: rule 1 lowers class prod to oppo because current is 1, which is > 0: "
    assert warning == start + "x" * (256 - len(start) - 1) + "…"
