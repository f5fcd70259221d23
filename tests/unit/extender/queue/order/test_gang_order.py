"""Levels, factors and ranks of gangs."""

import pytest

from extender.queue.order.gang_order import GangOrder, VcSize
from extender.queue.order.standing import Standing
from policy.queues.factors import FACTORS, FactorName
from policy.queues.queues import DEFAULT_QUEUES
from tests.support.queue.orders import CLASSES, DAY, HOUR, facts, one_level, queues

_LEVELS = """
levels:
- {name: urgent, who: {classes: [prod], when: "leafCells <= 8"}, strategy: fifo}
- name: middle
  who: {groups: [vision], users: [alice], vcs: [lab]}
  strategy: fifo
  promoteAfter: 1d
- {name: rest, strategy: priority, promoteAfter: 2d}
"""


def _standing(order: GangOrder, *, now: float = 0.0, **of: object) -> Standing:
    return order.standing(facts(**of), now=now)  # type: ignore[arg-type]


def test_without_a_document_the_class_counts_for_a_week_and_then_the_age() -> None:
    order = GangOrder(DEFAULT_QUEUES, CLASSES)
    prod = _standing(order, class_name="prod", asked=7 * DAY)
    oppo = _standing(order, class_name="oppo", asked=1.0)
    test = _standing(order, class_name="test", asked=0.0)
    assert sorted([oppo, test, prod], key=lambda one: one.key) == [test, prod, oppo]
    assert prod.rank == 0.0


def test_without_classes_higher_priorities_are_ahead() -> None:
    order = GangOrder()
    ranks = [_standing(order, class_name="", priority=one).rank for one in (-1, 0, 1, 10, 1000)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] == 0.0
    assert ranks[-1] == -7 * DAY


def test_the_first_level_that_takes_a_gang_counts() -> None:
    order = GangOrder(queues(_LEVELS), CLASSES)
    assert _standing(order, class_name="prod").level_name == "urgent"
    assert _standing(order, class_name="prod", leaf_cells=16).level_name == "middle"
    assert _standing(order, user="bob").level_name == "rest"


def test_an_upper_level_is_ahead_of_all_of_a_lower_one() -> None:
    order = GangOrder(queues(_LEVELS), CLASSES)
    upper = _standing(order, class_name="prod", asked=1000.0)
    lower = _standing(order, user="bob", class_name="prod", leaf_cells=16, asked=0.0)
    assert upper.key < lower.key


@pytest.mark.parametrize(
    ("age", "level", "left"),
    [(0.0, "rest", 2 * DAY), (2 * DAY, "middle", 3 * DAY), (3 * DAY, "urgent", None)],
)
def test_a_gang_is_promoted_level_by_level(age: float, level: str, left: float | None) -> None:
    order = GangOrder(queues(_LEVELS), CLASSES)
    standing = _standing(order, user="bob", asked=100.0, now=100.0 + age)
    assert (standing.level_name, standing.own_level_name) == (level, "rest")
    assert standing.next_promotion == (None if left is None else 100.0 + left)


@pytest.mark.parametrize(
    ("factor", "given", "value"),
    [
        ("class", {"class_name": "prod"}, 1.0),
        ("class", {"class_name": "test"}, 0.5),
        ("class", {"class_name": "oppo"}, 0.0),
        ("class", {"class_name": "gone"}, 0.0),
        ("userLevel", {"user": "alice"}, 1.0),
        ("userLevel", {"user": "bob"}, 0.5),
        ("userLevel", {"user": "carol"}, 0.0),
        ("groupLevel", {"group": "vision"}, 1.0),
        ("groupLevel", {"group": None}, 0.0),
        ("fairShare", {}, 1.0),
        ("shortRun", {"run": 6 * HOUR}, 0.75),
        ("shortRun", {"limit": 12 * HOUR}, 0.5),
        ("shortRun", {"run": 90 * HOUR}, 0.0),
        ("shortRun", {}, 0.0),
        ("asked", {"limit": 12 * HOUR}, 0.5),
        ("asked", {"run": HOUR}, 0.0),
        ("smallGang", {"leaf_cells": 1}, 1.0),
        ("smallGang", {"leaf_cells": 8}, 0.5),
        ("smallGang", {"leaf_cells": 64}, 0.0),
        ("smallGang", {"leaf_cells": 128}, 0.0),
        ("smallGang", {"leaf_cells": 16, "vc": "free"}, 0.5),
        ("fill", {}, 0.5),
        ("fill", {"vc": "free"}, 0.0),
    ],
)
def test_factors(factor: str, given: dict[str, object], value: float) -> None:
    document = queues(
        f"levels: [{{name: a, strategy: formula, worth: {{{factor}: 100s}}}}]\n"
        "userLevels: {gold: [alice], silver: [bob]}\ngroupLevels: {first: [vision]}"
    )
    order = GangOrder(document, CLASSES)
    order.observe_vcs({"lab": VcSize(64, 32)}, leaf_cells=256)
    (part,) = order.standing(facts(**given), now=0.0).parts  # type: ignore[arg-type]
    assert (part.factor, part.value, part.seconds) == (factor, value, 100 * value)


def test_every_factor_is_documented_and_lies_between_0_and_1() -> None:
    order = GangOrder(one_level("fifo"), CLASSES)
    for name in FactorName:
        assert 0.0 <= order.factor(name, facts()) <= 1.0
        assert FACTORS[name].value


def test_parts_add_up_to_the_rank() -> None:
    order = GangOrder(one_level("formula", **{"class": "24h", "smallGang": "10h"}), CLASSES)
    order.observe_vcs({"lab": VcSize(64)}, leaf_cells=64)
    standing = _standing(order, class_name="prod", asked=1e6)
    assert [part.seconds for part in standing.parts] == [24 * HOUR, 5 * HOUR]
    assert standing.rank == 1e6 - 29 * HOUR


@pytest.mark.parametrize(
    ("formula", "seconds"),
    [
        ("worth.class * class * class", 900.0),
        ("1000000.0", 3600.0),
        ("0.0 - 5.0", 0.0),
        ("1.0 / (class - 0.5)", 0.0),
    ],
    ids=["as written", "clamped to the horizon", "not below 0", "no number"],
)
def test_a_formula_is_clamped_to_the_horizon(formula: str, seconds: float) -> None:
    text = f'levels: [{{name: a, strategy: formula, worth: {{class: 1h}}, formula: "{formula}"}}]'
    order = GangOrder(queues(text), CLASSES)
    assert _standing(order, class_name="test").credit == pytest.approx(seconds)


def test_an_equal_document_changes_nothing() -> None:
    order = GangOrder(queues(_LEVELS), CLASSES)
    assert not order.configure(queues(_LEVELS), CLASSES)
    assert order.configure(DEFAULT_QUEUES, CLASSES)


def test_only_vcs_whose_factors_change_are_reported() -> None:
    sizes = {"lab": VcSize(64, 0), "free": VcSize(0, 0)}
    order = GangOrder(one_level("fifo", fill="1h"), CLASSES)
    assert order.observe_vcs(sizes, leaf_cells=64) == []
    assert order.observe_vcs(sizes | {"lab": VcSize(64, 32)}, leaf_cells=64) == ["lab"]
    plain = GangOrder(one_level("fifo"), CLASSES)
    assert plain.observe_vcs(sizes | {"lab": VcSize(64, 32)}, leaf_cells=64) == []
