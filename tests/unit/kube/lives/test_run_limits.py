"""What owners and workloads say about run times."""

import re
from typing import Any

import pytest

from kube import marks
from kube.lives.run_limits import (
    check_checkpoint_cost,
    check_estimate,
    check_no_deadline,
    read_checkpoint_cost,
    read_deadline,
    read_estimate,
    template_marks,
)
from policy.errors import RequestError


def _marked(key: str, value: object) -> dict[str, Any]:
    return {"metadata": {"annotations": {key: value}}}


def _estimated(value: object) -> dict[str, Any]:
    return _marked(marks.RUN_TIME_ANNOTATION, value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("4h", 14400), ("1h30m", 5400), ("2d", 172800), ("90s", 90), ("10m5s", 605)],
)
def test_estimates_are_read(text: str, seconds: int) -> None:
    assert read_estimate(_estimated(text)) == seconds
    check_estimate(_estimated(text))


@pytest.mark.parametrize("text", ["", "h", "4", "4 h", "-4h", "4h3d", "٤h", "0s", 4, "9" * 99])
def test_what_is_no_duration_is_no_estimate_and_is_refused(text: object) -> None:
    assert read_estimate(_estimated(text)) is None
    path = re.escape("metadata.annotations[cellgate.io/expected-run-time]")
    with pytest.raises(RequestError, match=path):
        check_estimate(_estimated(text))


@pytest.mark.parametrize(
    ("text", "seconds"), [("3600", 3600), ("0", None), ("x", None), ("9" * 99, None), (7, None)]
)
def test_deadlines_are_read(text: object, seconds: int | None) -> None:
    assert read_deadline(_marked(marks.DEADLINE_ANNOTATION, text)) == seconds


def test_only_the_webhook_writes_a_deadline() -> None:
    check_no_deadline({})
    with pytest.raises(RequestError, match="is written by Cellgate"):
        check_no_deadline(_marked(marks.DEADLINE_ANNOTATION, "60"))


def test_a_job_tells_its_pods_its_estimate_and_its_deadline() -> None:
    told = template_marks(_estimated("4h"), {}, holder={"activeDeadlineSeconds": 60})
    assert told == {marks.RUN_TIME_ANNOTATION: "4h", marks.DEADLINE_ANNOTATION: "60"}


def test_the_estimate_of_the_template_counts_before_that_of_the_workload() -> None:
    assert template_marks(_estimated("4h"), _estimated("1h"), holder={}) == {}


def test_a_template_with_a_deadline_of_its_own_is_refused() -> None:
    forged = _marked(marks.DEADLINE_ANNOTATION, "60")
    with pytest.raises(RequestError, match="is written by Cellgate"):
        template_marks({}, forged, holder={})


def _costing(value: object) -> dict[str, Any]:
    return _marked(marks.COST_ANNOTATION, value)


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("0s", 0), ("1h30m", 5400)])
def test_costs_of_a_preemption_are_read(text: str, seconds: int) -> None:
    assert read_checkpoint_cost({marks.COST_ANNOTATION: text}) == seconds
    check_checkpoint_cost(_costing(text))
    check_checkpoint_cost({})


@pytest.mark.parametrize("text", ["", "10", "-10m", "10 m", "99w", 600])
def test_a_cost_that_is_no_duration_is_not_counted_and_refused(text: object) -> None:
    assert read_checkpoint_cost({marks.COST_ANNOTATION: text}) is None
    path = re.escape("metadata.annotations[cellgate.io/checkpoint-cost]")
    with pytest.raises(RequestError, match=path):
        check_checkpoint_cost(_costing(text))
    with pytest.raises(RequestError, match=path):
        template_marks(_costing(text), {}, holder={})


def test_a_job_tells_its_pods_what_a_preemption_costs() -> None:
    assert template_marks(_costing("5m"), {}, holder={}) == {marks.COST_ANNOTATION: "5m"}
    assert template_marks(_costing("5m"), _costing("1m"), holder={}) == {}
