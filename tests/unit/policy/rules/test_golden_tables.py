"""The two rule tables that we come from: what they did, and were meant to do."""

import pytest

from policy.documents.rule_checks import check_policy
from policy.rules.decision import Outcome
from policy.rules.rule_table import RuleTable
from policy.submission import Occupancy
from tests.support.policy.documents import CLASSES, a_submission
from tests.support.policy.golden_tables import SAMPLE, SHIPPED


def _decide(
    table: RuleTable, *, user: str, class_name: str, asks: int, held: tuple[int, int]
) -> tuple[Outcome, str, list[int]]:
    occupied, occupied_high = held
    decision = table.decide(
        a_submission(user, class_name=class_name, asks=asks),
        usage=Occupancy(occupied=occupied, occupied_high=occupied_high),
        classes=CLASSES,
    )
    return decision.outcome, str(decision.final_class), [hit.number for hit in decision.hits]


ADMITTED, REFUSED = Outcome.ADMITTED, Outcome.REFUSED


@pytest.mark.parametrize(
    ("user", "class_name", "asks", "held", "expected"),
    [
        ("fa_test", "prod", 500, (900, 900), (ADMITTED, "prod", [1])),
        ("fa_test", "oppo", 500, (900, 0), (ADMITTED, "oppo", [1])),
        ("fa_test2", "prod", 4, (0, 0), (ADMITTED, "prod", [3])),
        ("fa_test2", "test", 2, (20, 2), (ADMITTED, "test", [3])),
        ("fa_test2", "prod", 5, (0, 0), (ADMITTED, "oppo", [2, 5])),
        ("fa_test2", "prod", 1, (33, 4), (ADMITTED, "oppo", [2, 5])),
        ("fa_test2", "prod", 5, (30, 4), (REFUSED, "oppo", [2, 4])),
        ("fa_test2", "oppo", 30, (0, 0), (ADMITTED, "oppo", [5])),
        ("fa_test2", "oppo", 4, (30, 4), (ADMITTED, "oppo", [5])),
        ("fa_test2", "oppo", 1, (34, 4), (REFUSED, "oppo", [4])),
        ("user_proh", "oppo", 1, (0, 0), (REFUSED, "oppo", [6])),
        ("user_proh", "prod", 1, (0, 0), (REFUSED, "prod", [6])),
        ("fa_bob", "test", 2, (0, 0), (ADMITTED, "test", [8])),
        ("fa_bob", "prod", 1, (21, 2), (ADMITTED, "oppo", [7, 11])),
        ("fa_bob", "prod", 3, (18, 0), (REFUSED, "oppo", [7, 10])),
        ("fa_bob", "oppo", 21, (0, 0), (REFUSED, "oppo", [10])),
        ("carol", "prod", 1, (0, 0), (ADMITTED, "oppo", [9, 11])),
        ("carol", "test", 20, (0, 0), (ADMITTED, "oppo", [9, 11])),
        ("carol", "prod", 1, (20, 0), (REFUSED, "oppo", [9, 10])),
        ("carol", "oppo", 4, (16, 0), (ADMITTED, "oppo", [11])),
        ("carol", "oppo", 0, (0, 0), (ADMITTED, "oppo", [12])),
        ("not_fa_test", "prod", 1, (0, 0), (ADMITTED, "oppo", [9, 11])),
    ],
)
def test_the_sample_table(
    user: str,
    class_name: str,
    asks: int,
    held: tuple[int, int],
    expected: tuple[Outcome, str, list[int]],
) -> None:
    decided = _decide(SAMPLE, user=user, class_name=class_name, asks=asks, held=held)
    assert decided == expected


Wish = tuple[str, int]


def _submit(user: str, wishes: list[Wish]) -> list[str]:
    """Submit gangs one after the other; return the class of each, or `fail`."""
    held = {"prod": 0, "test": 0, "oppo": 0}
    answers: list[str] = []
    for class_name, asks in wishes:
        high = held["prod"] + held["test"]
        usage = (high + held["oppo"], high)
        outcome, final, _ = _decide(SAMPLE, user=user, class_name=class_name, asks=asks, held=usage)
        answers.append(final if outcome is ADMITTED else "fail")
        held[final] += asks * (outcome is ADMITTED)
    return answers


SENTENCES: dict[str, tuple[str, list[Wish], list[str]]] = {
    "ordinary users run oppo only, within 20": (
        "carol",
        [("prod", 8), ("test", 8), ("oppo", 4)],
        ["oppo", "oppo", "oppo"],
    ),
    "fa users have 2 high cells and 20 oppo cells": (
        "fa_bob",
        [("prod", 1), ("oppo", 20), ("test", 1)],
        ["prod", "oppo", "test"],
    ),
    "user_proh may not submit": (
        "user_proh",
        [("prod", 1), ("test", 1), ("oppo", 1)],
        ["fail", "fail", "fail"],
    ),
    "fa_test2 has 4 high and 30 oppo cells at the same time": (
        "fa_test2",
        [("prod", 2), ("test", 2), ("oppo", 30)],
        ["prod", "test", "oppo"],
    ),
    "fa_test has no limit": (
        "fa_test",
        [("prod", 500), ("test", 500), ("oppo", 500)],
        ["prod", "test", "oppo"],
    ),
}
"""The five sentences of the description on its table: a user, gangs, and what becomes of them."""


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_table_does_what_its_description_says_in_every_order(sentence: str) -> None:
    user, wishes, classes = SENTENCES[sentence]
    assert _submit(user, wishes) == classes
    assert _submit(user, wishes[::-1]) == classes[::-1]


@pytest.mark.parametrize("first", [("oppo", 20), ("prod", 20)])
@pytest.mark.parametrize("class_name", ["prod", "test", "oppo"])
def test_an_ordinary_user_who_holds_20_gets_no_more(first: Wish, class_name: str) -> None:
    assert _submit("carol", [first, (class_name, 1)]) == ["oppo", "fail"]


@pytest.mark.parametrize(
    ("user", "high", "low"), [("fa_bob", 2, 20), ("fa_test2", 4, 30)], ids=["fa", "fa_test2"]
)
def test_both_shares_are_full_at_the_same_time_in_every_order(
    user: str, high: int, low: int
) -> None:
    wishes = [("prod", high), ("oppo", low)]
    for order in (wishes, wishes[::-1]):
        classes = [class_name for class_name, _ in order]
        assert _submit(user, [*order, ("prod", 1), ("oppo", 1)]) == [*classes, "fail", "fail"]
    # What is over the high share becomes oppo, and counts there.
    assert _submit(user, [("prod", high), ("prod", low), ("test", 1)]) == ["prod", "oppo", "fail"]


@pytest.mark.parametrize(
    ("user", "class_name", "asks", "held", "expected"),
    [
        ("admin", "prod", 99, (99, 99), (ADMITTED, "prod", [5])),
        ("user_proh", "test", 1, (0, 0), (REFUSED, "test", [6])),
        ("dave", "prod", 2, (0, 0), (ADMITTED, "test", [7, 9])),
        ("dave", "prod", 3, (0, 0), (ADMITTED, "oppo", [7, 8, 11])),
        ("dave", "prod", 3, (7, 0), (ADMITTED, "oppo", [7, 8, 11])),
        ("dave", "prod", 3, (8, 0), (REFUSED, "oppo", [7, 8, 10])),
        ("dave", "test", 1, (2, 2), (ADMITTED, "oppo", [8, 11])),
        ("dave", "oppo", 10, (0, 0), (ADMITTED, "oppo", [11])),
        ("dave", "oppo", 11, (0, 0), (REFUSED, "oppo", [10])),
    ],
)
def test_the_shipped_chain_from_prod_over_test_and_oppo_to_fail(
    user: str,
    class_name: str,
    asks: int,
    held: tuple[int, int],
    expected: tuple[Outcome, str, list[int]],
) -> None:
    decided = _decide(SHIPPED, user=user, class_name=class_name, asks=asks, held=held)
    assert decided == expected


@pytest.mark.parametrize("table", [SAMPLE, SHIPPED], ids=["sample", "shipped"])
def test_the_tables_contradict_nothing(table: RuleTable) -> None:
    assert check_policy(CLASSES, table) == []


def test_on_a_refusal_the_notes_of_all_rules_hit_are_told() -> None:
    decision = SAMPLE.decide(
        a_submission("carol", asks=4), usage=Occupancy(occupied=18), classes=CLASSES
    )
    assert decision.format_refusal() == (
        "carol asked for 4 leaf cells in class prod: refused by rule 10. "
        "carol holds 18 leaf cells, 0 of them in high classes. "
        "Rule 9 (普通用户只能提交oppo任务) lowers class prod to oppo. "
        "It applies to user .*, class prod|test, regardless of what is asked for or held. "
        "Rule 10 (超过20将失败) refuses class oppo: "
        "occupiedLow would be 22 (18 held, 4 asked for), which is > 20. "
        "With 2 fewer leaf cells held or asked for in classes that are not high the rule would not "
        "apply."
    )
