"""Contradictions: what can be proved is told, what cannot is left alone."""

import pytest

from policy.classes import NO_CLASSES
from policy.documents.rule_checks import check_policy, check_priorities
from policy.errors import Problem
from tests.support.policy.documents import CLASSES, rules_of


def _problems(rules: str) -> list[str]:
    return [str(problem) for problem in check_policy(CLASSES, rules_of(rules))]


OTHER = (
    'rules[0].then: "other" is not one of the classes prod, test, oppo; use retain, fail or a class'
)


@pytest.mark.parametrize(
    ("rules", "problems"),
    [
        ("- {then: other}", [OTHER]),
        ("- {then: test}\n- {then: oppo}", []),
        (
            "- {then: prod}",
            [
                "rules[0].then: prod is not lower than any class that the rule matches: "
                "prod, test, oppo"
            ],
        ),
        (
            "- {priority: test|oppo, then: test}",
            ["rules[0].then: test is not lower than any class that the rule matches: test, oppo"],
        ),
        ("- {priority: prod|oppo, then: test}", []),
        (
            "- {priority: default, then: retain}",
            ["rules[0].priority: matches none of the classes prod, test, oppo"],
        ),
        (
            "- {priority: default, then: other}",
            [
                OTHER,
                "rules[0].priority: matches none of the classes prod, test, oppo",
            ],
        ),
    ],
)
def test_what_rules_say_about_classes(rules: str, problems: list[str]) -> None:
    assert _problems(rules) == problems


def test_without_classes_a_rule_cannot_name_one_and_can_match_any() -> None:
    rules = rules_of("- {priority: x, then: retain}\n- {then: oppo}")
    assert check_policy(NO_CLASSES, rules) == [
        Problem("rules[1].then", '"oppo" is not a class: there is no Classes document')
    ]


def test_priority_classes_must_be_in_the_order_of_the_classes() -> None:
    assert check_priorities(CLASSES, {"prod": 3, "test": 2, "oppo": 1}) == []
    assert check_priorities(CLASSES, {"prod": 3, "oppo": 1, "other": 9}) == []
    assert check_priorities(CLASSES, {"prod": 3, "test": 3, "oppo": 4}) == [
        Problem(
            "classes[1].name",
            "the value of PriorityClass test is 3, not lower than that of prod, which is 3",
        ),
        Problem(
            "classes[2].name",
            "the value of PriorityClass oppo is 4, not lower than that of test, which is 3",
        ),
    ]


UNREACHABLE = "rules[1]: can never apply: rule 1 ({}) matches the same gangs and stops"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("then: retain", "user: a, then: fail"),
        ("then: fail", "then: fail"),
        ("user: .*, vc: ^.*$, then: fail", "current: 4, then: test"),
        ("user: a, then: fail", "user: a, vc: b, occupied: 4, then: fail"),
        ("user: a, occupied: 2, then: fail", "user: a, occupied: 4, then: test"),
        ("current: '>= 0', then: fail", "then: test"),
        ("group: .*, then: fail", "group: .*, then: test"),
        ("priority: prod, then: fail", "priority: prod, then: test"),
        ("when: user == 'a', then: fail", "when: user == 'a', current: 1, then: test"),
        ("occupiedHigh: 2, then: fail", "occupiedHigh: 2, then: test"),
    ],
)
def test_a_rule_that_an_earlier_one_leaves_nothing_is_unreachable(earlier: str, later: str) -> None:
    then = "retain" if "retain" in earlier else "fail"
    assert _problems(f"- {{{earlier}}}\n- {{{later}}}") == [UNREACHABLE.format(then)]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("user: a, then: fail", "then: fail"),
        ("user: a, then: fail", "user: b, then: fail"),
        ("then: test", "then: oppo"),
        ("occupied: 4, then: fail", "occupied: 2, then: fail"),
        ("occupied: 4, then: fail", "current: 9, then: fail"),
        ("group: .*, then: fail", "then: fail"),
        ("group: .*, then: fail", "group: a, then: fail"),
        ("current: '> 0', then: fail", "then: test"),
        ("when: user == 'a', then: fail", "when: user == 'b', then: fail"),
    ],
)
def test_a_rule_that_may_be_reached_is_left_alone(earlier: str, later: str) -> None:
    assert _problems(f"- {{{earlier}}}\n- {{{later}}}") == []


@pytest.mark.parametrize(
    ("condition", "is_reported"),
    [
        ("priority: ^test$", False),
        ("occupiedHigh: 2", False),
        ("when: class == 'test'", False),
        ("user: a", True),
        ("when: user == 'a'", True),
    ],
)
def test_a_rule_in_between_that_lowers_can_make_a_later_one_reachable(
    condition: str, is_reported: bool
) -> None:
    # A gang in class prod passes the first rule, is lowered, and meets the third as test.
    rules = [f"{condition}, then: retain", "priority: prod, then: test", f"{condition}, then: fail"]
    assert bool(_problems("".join(f"- {{{rule}}}\n" for rule in rules))) is is_reported


def test_the_first_covering_rule_is_named_and_every_unreachable_one_is_told() -> None:
    rules = "- {user: a, then: fail}\n- {then: retain}\n- {user: a, then: fail}\n- {then: fail}"
    assert _problems(rules) == [
        "rules[2]: can never apply: rule 1 (fail) matches the same gangs and stops",
        "rules[3]: can never apply: rule 2 (retain) matches the same gangs and stops",
    ]
