"""Rules: matching, lowering, and what happens when something is not known."""

import pytest

from policy.classes import NO_CLASSES
from policy.rules.comparison import Comparison
from policy.rules.decision import (
    ComparedNumber,
    Hit,
    Outcome,
    Quantity,
    Range,
    RuleDecision,
    RuleWarning,
    WarningKind,
)
from policy.rules.rule_table import NO_RULES
from policy.submission import ClassName, Occupancy, Submission
from tests.support.policy.documents import CLASSES, OPPO, PROD, TEST, a_submission, rules_of

NOTHING_HELD = Occupancy()


def _numbers_hit(
    text: str, submission: Submission, usage: Occupancy | None = NOTHING_HELD
) -> list[int]:
    decision = rules_of(text).decide(submission, usage=usage, classes=CLASSES)
    return [hit.number for hit in decision.hits]


@pytest.mark.parametrize(
    ("condition", "submission", "matches"),
    [
        ("user: lic", a_submission("alice"), True),
        ("user: ^lic", a_submission("alice"), False),
        ("group: ^vision$", a_submission(groups=("nlp", "vision")), True),
        ("group: ^vision$", a_submission(groups=("nlp",)), False),
        ("group: .*", a_submission(groups=()), False),
        ("group: ''", a_submission(groups=()), True),
        ("vc: ^lab$", a_submission(vc="lab"), True),
        ("vc: ^lab$", a_submission(vc="label"), False),
        ("priority: prod|test", a_submission(class_name="test"), True),
        ("priority: prod|test", a_submission(class_name="oppo"), False),
        ("current: 4", a_submission(asks=4), False),
        ("current: 4", a_submission(asks=5), True),
        ("when: leafType == 'A100'", a_submission(leaf_type="A100"), True),
        ("when: leafType == ''", a_submission(leaf_type=None), True),
        ("when: labels.team == 'a'", a_submission(labels={"team": "a"}), True),
        ("when: namespace == 'team' && gangSize == 1", a_submission(), True),
        ("user: alice, vc: lab, current: 0", a_submission(vc="lab"), True),
        ("user: alice, vc: lab, current: 0", a_submission(vc="default"), False),
    ],
    ids=str,
)
def test_every_field_must_match(condition: str, submission: Submission, matches: bool) -> None:
    assert _numbers_hit(f"- {{{condition}, then: retain}}", submission) == [1] * matches


@pytest.mark.parametrize(
    ("condition", "held", "class_name", "matches"),
    [
        ("occupied: 20", Occupancy(occupied=16), "oppo", False),
        ("occupied: 20", Occupancy(occupied=17), "oppo", True),
        ("occupiedHigh: 2", Occupancy(occupied=9, occupied_high=0), "prod", True),
        ("occupiedHigh: 2", Occupancy(occupied=9, occupied_high=2), "oppo", False),
        ("occupiedHigh: 2", Occupancy(occupied=9, occupied_high=3), "oppo", True),
        ("occupiedLow: 2", Occupancy(occupied=9, occupied_high=7), "prod", False),
        ("occupiedLow: 5", Occupancy(occupied=9, occupied_high=7), "oppo", True),
        ("occupiedLow: 6", Occupancy(occupied=9, occupied_high=7), "oppo", False),
        (
            "when: occupied == 13 && occupiedHigh == 3",
            Occupancy(occupied=9, occupied_high=3),
            "oppo",
            True,
        ),
        ("when: occupiedHigh == 7", Occupancy(occupied=9, occupied_high=3), "prod", True),
    ],
)
def test_numbers_include_this_gang_in_high_classes_only_while_it_is_in_one(
    condition: str, held: Occupancy, class_name: str, matches: bool
) -> None:
    submission = a_submission(asks=4, class_name=class_name)
    hit = _numbers_hit(f"- {{{condition}, then: retain}}", submission, held)
    assert hit == [1] * matches


def test_the_first_rule_that_stops_decides() -> None:
    table = rules_of("- {user: bob, then: fail}\n- {then: retain}\n- {user: alice, then: fail}")
    submission = a_submission()
    assert table.decide(submission, usage=NOTHING_HELD, classes=CLASSES) == RuleDecision(
        submission=submission,
        usage=NOTHING_HELD,
        outcome=Outcome.ADMITTED,
        final_class=PROD,
        hits=(Hit(index=1, then="retain", note="", class_before=PROD, class_after=PROD),),
    )


@pytest.mark.parametrize(("held", "outcome"), [(6, Outcome.ADMITTED), (7, Outcome.REFUSED)])
def test_an_expression_sees_what_is_held_in_low_classes(held: int, outcome: Outcome) -> None:
    usage = Occupancy(occupied=held + 2, occupied_high=2)
    decision = rules_of('- {when: "occupiedLow > 10", then: fail}').decide(
        a_submission(asks=4, class_name="oppo"), usage=usage, classes=CLASSES
    )
    assert decision.outcome is outcome
    assert decision.valid.occupied_low == held


def test_a_lowered_class_is_what_the_next_rules_see() -> None:
    table = rules_of(
        """
- {priority: oppo, then: fail, note: stands before and is not tried again}
- {priority: prod, occupiedHigh: "> 2", then: oppo, note: too many}
- {priority: prod, then: fail}
- {when: "class == 'oppo' && requestedClass == 'prod' && occupiedHigh == 0", then: fail, note: n}
"""
    )
    submission = a_submission(asks=4)
    assert table.decide(submission, usage=NOTHING_HELD, classes=CLASSES) == RuleDecision(
        submission=submission,
        usage=NOTHING_HELD,
        outcome=Outcome.REFUSED,
        final_class=OPPO,
        hits=(
            Hit(
                index=1,
                then="oppo",
                note="too many",
                class_before=PROD,
                class_after=OPPO,
                numbers=(
                    ComparedNumber(
                        quantity=Quantity.OCCUPIED_HIGH, value=4, comparison=Comparison(">", 2)
                    ),
                ),
                conditions=(("class", "prod"),),
            ),
            Hit(
                index=3,
                then="fail",
                note="n",
                class_before=OPPO,
                class_after=OPPO,
                conditions=(
                    (
                        "when",
                        "class == 'oppo' && requestedClass == 'prod' && occupiedHigh == 0",
                    ),
                ),
            ),
        ),
        valid=Range(0, 0, 0),
        needs_usage=True,
    )


@pytest.mark.parametrize(
    ("asked", "final", "hit"),
    [("prod", TEST, [2]), ("test", TEST, []), ("oppo", OPPO, [])],
)
def test_a_rule_never_raises_a_class_and_one_that_would_is_passed_over(
    asked: str, final: ClassName, hit: list[int]
) -> None:
    table = rules_of("- {then: prod}\n- {then: test}\n- {then: test}")
    decision = table.decide(a_submission(class_name=asked), usage=NOTHING_HELD, classes=CLASSES)
    assert (decision.final_class, [rule.number for rule in decision.hits]) == (final, hit)


@pytest.mark.parametrize("classes", [NO_CLASSES, CLASSES], ids=["no classes", "not listed"])
def test_a_class_without_a_rank_is_never_lowered(classes: object) -> None:
    table = rules_of("- {then: oppo}")
    submission = a_submission(class_name="other")
    decision = table.decide(
        submission, usage=NOTHING_HELD, classes=NO_CLASSES if classes is NO_CLASSES else CLASSES
    )
    assert decision == RuleDecision(
        submission=submission,
        usage=NOTHING_HELD,
        outcome=Outcome.ADMITTED,
        final_class=ClassName("other"),
    )


def test_without_rules_everything_is_admitted_as_asked() -> None:
    submission = a_submission()
    assert NO_RULES.decide(submission, usage=None, classes=NO_CLASSES) == RuleDecision(
        submission=submission, usage=None, outcome=Outcome.ADMITTED, final_class=PROD
    )


@pytest.mark.parametrize(
    ("rules", "final", "hit", "warned"),
    [
        ("- {user: bob, occupied: 0, then: fail}\n- {then: oppo}", OPPO, [2], []),
        ("- {current: 9, occupied: 0, then: fail}\n- {then: oppo}", OPPO, [2], []),
        ("- {when: current > 9, occupied: 0, then: fail}\n- {then: oppo}", OPPO, [2], []),
        ("- {then: test}\n- {occupied: 0, then: fail}\n- {then: oppo}", TEST, [1], [2]),
        ("- {occupiedHigh: 0, then: fail}", PROD, [], [1]),
        ("- {when: occupied > 99, then: fail}", PROD, [], [1]),
        ("- {when: current == 1, occupied: 99, then: fail}", PROD, [], [1]),
    ],
    ids=[
        "not reached by user",
        "not reached by number",
        "not reached by when",
        "reached after a lowering",
        "by occupiedHigh",
        "by when",
        "by occupied beside when",
    ],
)
def test_with_usage_unknown_the_first_rule_that_needs_it_keeps_the_class(
    rules: str, final: ClassName, hit: list[int], warned: list[int]
) -> None:
    decision = rules_of(rules).decide(a_submission(), usage=None, classes=CLASSES)
    assert decision.outcome is Outcome.ADMITTED
    assert (decision.final_class, [rule.number for rule in decision.hits]) == (final, hit)
    assert decision.warnings == tuple(
        RuleWarning(index=number - 1, kind=WarningKind.USAGE_UNKNOWN) for number in warned
    )


def test_a_when_without_an_answer_does_not_match_and_is_told() -> None:
    table = rules_of("- {when: labels.team == 'a', then: fail}\n- {then: test}")
    decision = table.decide(a_submission(), usage=NOTHING_HELD, classes=CLASSES)
    assert (decision.final_class, decision.warnings) == (
        TEST,
        (RuleWarning(index=0, kind=WarningKind.WHEN_FAILED, detail='there is no key "team"'),),
    )


def test_a_table_full_of_failing_whens_does_not_fill_the_decision() -> None:
    table = rules_of("- {when: labels.team == 'a', then: fail}\n" * 50 + "- {then: test}")
    decision = table.decide(a_submission(), usage=NOTHING_HELD, classes=CLASSES)
    assert (decision.final_class, len(decision.warnings)) == (TEST, 10)


@pytest.mark.parametrize("rule_count", [10, 1000])
def test_the_last_of_many_rules_is_found(rule_count: int) -> None:
    others = "".join(f"- {{user: ^user{n}$, then: fail}}\n" for n in range(rule_count - 1))
    hit = _numbers_hit(f"{others}- {{user: ^alice$, then: oppo}}", a_submission())
    assert hit == [rule_count]


def test_a_name_that_is_not_unicode_is_matched_like_any_other() -> None:
    submission = a_submission("a\udc80", groups=("\udc80",), labels={"a": "\udc80"})
    rules = (
        "- {user: bob, then: fail}\n- {when: user == 'bob', then: fail}\n- {user: ^a, then: oppo}"
    )
    assert _numbers_hit(rules, submission) == [3]
