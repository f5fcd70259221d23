"""A policy's Queues document as a tree, changed and written."""

import pytest

from policy.documents.yaml_text import parse_yaml
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.queues.durations import DAY, HOUR
from policy.queues.factors import FactorName
from policy.queues.queues import DEFAULT_QUEUES, Strategy
from policy.store import PolicyText, build_policy
from tests.support.timemachine.tuned_days import a_tree, searched
from timemachine.tuning.document import (
    changed,
    current_value,
    document_of,
    level_names,
    read,
    write,
)

_CLASS = "worth.class=0..192h"
_WHOLE = """
apiVersion: cellgate.io/v1
kind: Queues
levels:
- name: fast
  who: {users: ["on", alice], when: "leafCells <= 8"}
  strategy: fair-share
- name: rest
  strategy: formula
  worth: {class: 12h, shortRun: 6h}
  formula: worth.class * class + worth.shortRun * shortRun * shortRun
  promoteAfter: 72h
userLevels: {gold: ["0010"], silver: [yes, bob]}
groupLevels: {zeta: [vision], alpha: [speech]}
fairShare: {halfLife: 14d, weights: {vision: 2.5}, entry: none}
runTime: {cap: 48h, longest: {default: 14d}}
reservation: {perPool: 2, sticky: false}
maintenance:
- name: kernel
  nodes: ["1e3"]
  from: "2026-12-31T00:00:00Z"
  until: "2027-01-01T00:00:00Z"
  reason: "on: #1"
"""


def _policy(text: str = "") -> Policy:
    some = [PolicyText(kind=DocumentKind.QUEUES, source="queues.yaml", text=text)] if text else []
    return build_policy(some)


def test_the_document_of_a_policy_says_the_same_as_the_text_it_came_from() -> None:
    tree = document_of(_policy(_WHOLE))
    assert read(tree) == _policy(_WHOLE).queues
    assert list(dict(tree["userLevels"])) == ["gold", "silver"]  # type: ignore[arg-type]  # a mapping
    assert level_names(tree) == ["fast", "rest"]


def test_without_a_document_the_default_one_is_changed() -> None:
    assert read(document_of(_policy())) == DEFAULT_QUEUES


def test_what_is_written_is_read_as_the_same() -> None:
    tree = document_of(_policy(_WHOLE))
    assert parse_yaml(write(tree)) == (tree, [])


def test_only_what_is_searched_changes() -> None:
    (worth,) = searched("worth.shortRun@fast=0..192h", levels=("fast", "rest"))
    tree = document_of(_policy(_WHOLE))
    new = changed(tree, {worth: 36 * HOUR})
    assert new["levels"][0] == {  # type: ignore[index]  # a list
        "name": "fast",
        "who": {"users": ["on", "alice"], "when": "leafCells <= 8"},
        "strategy": "formula",
        "worth": {"fairShare": "48h", "shortRun": "36h"},
    }
    rest = {key: value for key, value in new.items() if key != "levels"}
    assert rest == {key: value for key, value in tree.items() if key != "levels"}
    assert new["levels"][1] == tree["levels"][1]  # type: ignore[index]  # a list


def test_other_fields_change_where_the_document_did_not_have_them() -> None:
    cap, depth = searched("runTime.cap=1h..7d", "reservation.perPool=0..4")
    queues = read(changed(a_tree(), {cap: 2 * HOUR, depth: 3.0}))
    assert queues is not None
    assert queues.run_time.cap == 2 * HOUR
    assert queues.reservation.per_pool == 3


@pytest.mark.parametrize(
    ("searches", "values", "strategy"),
    [
        ((_CLASS,), (0.0,), Strategy.FIFO),
        ((_CLASS,), (7 * DAY,), Strategy.PRIORITY),
        ((_CLASS, "worth.shortRun=0..192h"), (0.0, 192 * HOUR), Strategy.SHORTEST_FIRST),
        ((_CLASS, "worth.fairShare=0..192h"), (0.0, 48 * HOUR), Strategy.FAIR_SHARE),
        (("worth.shortRun=0..192h",), (HOUR,), Strategy.FORMULA),
    ],
)  # fmt: skip
def test_the_strategy_is_the_one_whose_worth_it_is(
    searches: tuple[str, ...], values: tuple[float, ...], strategy: Strategy
) -> None:
    queues = read(changed(a_tree(), dict(zip(searched(*searches), values, strict=True))))
    assert queues is not None
    assert queues.levels[0].strategy is strategy
    for one, value in zip(searched(*searches), values, strict=True):
        assert queues.levels[0].worth.get(FactorName(str(one.keys[-1])), 0.0) == value


def test_a_level_with_a_formula_keeps_it() -> None:
    (worth,) = searched("worth.shortRun@rest=0..192h", levels=("fast", "rest"))
    queues = read(changed(document_of(_policy(_WHOLE)), {worth: 0.0}))
    assert queues is not None
    assert queues.levels[1].formula is not None
    assert queues.levels[1].worth == {FactorName.CLASS: 12 * HOUR}


def test_what_the_checks_of_the_document_refuse_is_not_read() -> None:
    """A worth beyond `promoteAfter` of the level below breaks the bound of waiting."""
    (worth,) = searched("worth.fairShare@fast=0..384h", levels=("fast", "rest"))
    assert read(changed(document_of(_policy(_WHOLE)), {worth: 100 * HOUR})) is None


def test_the_current_worth_includes_that_of_the_strategy() -> None:
    short, klass, cap = searched("worth.shortRun=0..1h", "worth.class=0..1h", "runTime.cap=1h..2h")
    tree = a_tree()
    assert [current_value(tree, one) for one in (short, klass, cap)] == [0.0, 7 * DAY, None]
