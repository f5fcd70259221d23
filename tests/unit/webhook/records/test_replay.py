"""Admission decisions made again from their rows: the same, unless something decides otherwise."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from policy.admission import gang_decision, growth, logged
from policy.admission.logged import decide_again
from policy.classes import Classes
from policy.policy import restore
from policy.quotas import charge as charges
from policy.quotas.charge import Charge
from policy.quotas.quota_table import QuotaGroup, QuotaTable
from policy.rules import rule_table
from policy.rules.comparison import Comparison
from policy.rules.expression import Expression
from policy.rules.matching import AskedWhen
from policy.rules.patterns import PatternIndex
from policy.rules.rule_table import RuleTable
from state.log.records import DecisionRecord
from tests.support.state.records import a_decision
from tests.support.webhook.logged_admissions import LoggedAdmissions
from webhook.records.replay import AdmissionReplay, AdmissionReport


@lru_cache(maxsize=1)
def _rows() -> tuple[DecisionRecord, ...]:
    """Return what a webhook has logged, as it is read back."""
    store = asyncio.run(LoggedAdmissions().run(400))
    return tuple(
        replace(
            record,
            details=orjson.loads(orjson.dumps(record.details)),
            inputs=orjson.loads(orjson.dumps(record.inputs)),
            documents=tuple(store.documents[one] for one in record.document_hashes),
        )
        for record in store.records
    )


def _replay(rows: Any) -> AdmissionReport:
    replay = AdmissionReplay()
    for record in rows:
        replay.feed(record)
    return replay.report


def test_all_decisions_are_the_same_in_any_order() -> None:
    rows = list(_rows())
    random.Random(0).shuffle(rows)
    report = _replay(rows)
    assert report.differences == []
    assert (report.is_identical, report.rows, report.decisions) == (True, len(rows), len(rows))


def test_the_log_has_decisions_of_every_kind() -> None:
    """What the other tests of this file prove depends on it."""
    rows = _rows()
    assert {row.outcome for row in rows} == {"admitted", "refused", "queued"}
    assert len({row.policy_version for row in rows}) == 2
    for name in ("grows", "over", "notes", "used", "usage", "when", "rules", "held"):
        assert any(name in row.inputs for row in rows), name
    assert any("risesTo" in row.details for row in rows)
    assert any(row.details["class"] != row.details["requestedClass"] for row in rows)


def _broken(target: Any, name: str, new: Any) -> AbstractContextManager[Any]:
    return patch.object(target, name, new)


def _mutations() -> Iterator[Any]:
    """Yield ten ways to decide otherwise."""
    holds, lower = Comparison.holds, Classes.is_lower
    yield pytest.param(
        _broken(Comparison, "holds", lambda self, value: holds(self, value - 1)),
        id="comparisons are off by one",
    )
    yield pytest.param(
        _broken(PatternIndex, "places", lambda self, _: self.always), id="patterns match nothing"
    )
    yield pytest.param(_broken(Expression, "holds", lambda *_: True), id="every expression holds")
    yield pytest.param(_broken(rule_table, "FAIL", "fails"), id="fail does not refuse")
    yield pytest.param(_broken(Classes, "is_high", lambda *_: False), id="no class counts as high")
    yield pytest.param(
        _broken(Classes, "is_lower", lambda self, name, than: lower(self, than, name)),
        id="classes are ranked the other way round",
    )
    yield pytest.param(
        _broken(charges, "is_over", lambda limit, used, asked: used + asked >= limit.most),
        id="a limit is reached too early",
    )
    yield pytest.param(
        _broken(Charge, "asks", lambda *_: 1), id="every gang asks for one leaf cell"
    )
    yield pytest.param(
        _broken(QuotaGroup, "lowers", property(lambda _: False)), id="quotas lower no class"
    )
    yield pytest.param(
        _broken(QuotaTable, "find", lambda self, *_, **__: self.groups[0]),
        id="the first group pays for all",
    )
    yield pytest.param(
        _broken(growth, "_without_gang", lambda usage, _: usage),
        id="a gang that grows counts twice",
    )
    yield pytest.param(
        _broken(logged, "is_over", lambda *_: False), id="gangs that grow are never over quota"
    )
    yield pytest.param(
        _broken(gang_decision.GangDecision, "explain", lambda _: ("Because.",)),
        id="other words",
    )


@pytest.mark.parametrize("mutation", list(_mutations()))
def test_a_wrong_rule_is_found(mutation: AbstractContextManager[Any]) -> None:
    rows = _rows()
    with mutation:
        report = _replay(rows)
    assert not report.is_identical
    assert report.different
    assert len(report.differences) <= 20
    assert all(one.unequal for one in report.differences)


def test_a_difference_has_both_sides() -> None:
    row = next(one for one in _rows() if one.outcome == "admitted")
    (found,) = _replay([replace(row, outcome="refused")]).differences
    assert (found.logged["outcome"], found.replayed["outcome"]) == ("refused", "admitted")
    assert found.unequal == ["outcome"]


def test_explanations_are_compared_only_in_the_same_wording() -> None:
    row = _rows()[0]
    reworded = replace(row, reason="In other words.")
    (found,) = _replay([reworded]).differences
    assert found.unequal == ["reason"]
    older = replace(reworded, inputs={**row.inputs, "wording": 0})
    assert _replay([older]).differences == []


def test_a_damaged_row_is_a_difference() -> None:
    row = _rows()[0]
    damaged = replace(row, inputs={**row.inputs, "usage": "much"})
    (found,) = _replay([damaged]).differences
    assert found.replayed["error"].startswith("ValueError")


def test_rows_that_cannot_be_decided_again_are_counted_and_are_no_differences() -> None:
    row = _rows()[0]
    older = replace(row, inputs={"policy": row.inputs["policy"], "usage": [0, 0], "gangSize": 1})
    refusal = a_decision(outcome="refused", details={"operation": "CREATE"})
    of_extender = a_decision(service="extender", outcome="raised")
    report = _replay([older, refusal, of_extender, a_decision(kind="hold")])
    assert (report.rows, report.decisions, report.older, report.objects) == (2, 0, 1, 1)
    assert report.is_identical


@pytest.mark.parametrize("content", [None, '{"Rules": {"rules": 5}}'])
def test_a_policy_that_is_missing_or_cannot_be_read_is_told(content: str | None) -> None:
    row = _rows()[0]
    documents = tuple(replace(one, content=content or "") for one in row.documents if content)
    inputs = {**row.inputs, "policy": documents[0].hash} if documents else row.inputs
    report = _replay([replace(row, documents=documents, inputs=inputs)])
    assert (report.lacking, report.decisions, report.is_identical) == (1, 0, False)


def test_what_was_found_about_names_can_stand_in_for_them() -> None:
    """A matcher with recorded results decides like the patterns themselves."""

    class Recorded:
        def __init__(self, table: RuleTable, given: dict[AskedWhen, Any], rules: int) -> None:
            self.for_class, self._given, self._rules = table.for_class, given, rules

        def for_submission(self, _: object) -> int:
            return self._rules

        def answer(self, asked: AskedWhen, *_: object) -> Any:
            return self._given[asked]

    unseen = patch.object(RuleTable, "for_submission", None)
    for row in _rows():
        policy = restore(row.documents[0].content)
        _, decided = decide_again(row, policy)
        matches = decided.admission.rules.matches
        matcher = Recorded(policy.rules, dict(matches.answers), matches.rules)
        masked = replace(row, inputs={**row.inputs, "labels": {}})
        with unseen, patch.object(Expression, "holds", None):
            _, again = decide_again(masked, policy, matcher=matcher)
        assert (again.outcome, again.final_class) == (decided.outcome, decided.final_class)
