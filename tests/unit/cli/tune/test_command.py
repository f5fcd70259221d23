"""`cellgate tune`: what it finds, prints and writes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.log import progress as progress_of_work
from cli.main import main
from cli.tune.flags import OBJECTIVES
from service.exit_codes import Exit
from tests.support.policy.documents import HEAD
from timemachine.tuning.criteria import Objective

_BEGINNING = datetime(2026, 3, 1, tzinfo=UTC)
_DAYS = 10
_SMALL = 12
_DOCUMENT = f"""{HEAD}Queues
levels:
- {{name: all, strategy: fifo}}
fairShare: {{halfLife: 14d}}
reservation: {{after: 30m}}
"""


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine even short work takes long enough to show progress."""
    monkeypatch.setattr(progress_of_work, "_FIRST_SECONDS", 3600.0)


def _line(day: int, minutes: int, *, hours: float, leaf_cells: int) -> str:
    at = _BEGINNING + timedelta(days=day, minutes=minutes)
    return f"{at:%Y-%m-%dT%H:%M:%SZ},{hours * 3600:.0f},{leaf_cells},lab"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One node; each day a large, long gang is just ahead of many small, short ones."""
    lines = ["timestamp,duration,num_gpus,cluster"]
    for day in range(_DAYS):
        lines.append(_line(day, 0, hours=1, leaf_cells=8))
        lines.append(_line(day, 1, hours=6 + day % 3, leaf_cells=8))
        lines += [_line(day, 2 + one, hours=1, leaf_cells=2) for one in range(_SMALL)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    (tmp_path / "current.yaml").write_text(_DOCUMENT)
    return path


def _tune(trace: Path, *arguments: Path | str) -> Exit:
    given = (
        "--trace", trace, "--leaf-cells", "8", "--policy", trace.parent / "current.yaml",
        "--candidates", "3", "--weeks", "2", "--jobs", "1",
    )  # fmt: skip
    return main(["tune", *map(str, (*given, *arguments))], {})


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_better_document_is_found_and_written_and_the_check_accepts_it(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = trace.parent / "better.yaml"
    assert _tune(trace, "--output", written, "--allow", "worth.smallGang=1h..96h") is Exit.OK
    told = capsys.readouterr().out
    assert "is better than the current document:" in told
    assert "no VC waits longer by more than 5 %" in told
    assert "judging       2026-03-06 to 2026-03-10, 5 days, 70 gangs" in told
    text = written.read_text()
    assert text.startswith("# Written by cellgate tune ")
    assert "# Changed: worth.smallGang" in text
    assert "halfLife: 14d" in text
    assert "after: 30m" in text
    assert main(["check", str(written)], {}) is Exit.OK


def test_where_no_document_is_better_none_is_written(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worth of a minute changes nothing."""
    written = trace.parent / "better.yaml"
    allowed = "worth.smallGang=1s..60s"
    assert _tune(trace, "--output", written, "--allow", allowed) is Exit.FAILED
    told = capsys.readouterr().out
    assert "No document is better than the current one beyond noise." in told
    assert "may be noise" in told
    assert not written.exists()


def test_json_says_all_that_the_text_says(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _tune(trace, "--json", "--allow", "worth.smallGang=1h..96h") is Exit.OK
    found = _json(capsys)
    assert found["better"] is True
    best = next(one for one in found["finalists"] if one["name"] == found["best"])
    mean = best["objectives"]["mean"]
    assert mean["difference"]["high"] < 0
    assert mean["after"] < mean["before"]
    assert best["document"]["fairShare"] == {"halfLife": "14d"}
    assert best["vcs"]["lab"]["worse"] is False
    assert found["searched"] == [{"field": "levels[0].worth.smallGang", "low": "1h", "high": "96h"}]
    assert any(one["onFrontier"] for one in found["trainingFigures"])


def test_an_interrupted_search_goes_on_where_it_ended(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = trace.parent / "kept.jsonl"
    allowed = ("--allow", "worth.smallGang=1h..96h", "--resume", kept)
    assert _tune(trace, *allowed) is Exit.OK
    first = capsys.readouterr().out
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines[:4]) + "\n")
    assert _tune(trace, *allowed) is Exit.OK
    again = capsys.readouterr().out
    assert "4 of them from the file" in again
    assert first.split("Training,")[1] == again.split("Training,")[1]
    assert len(kept.read_text().splitlines()) == len(lines)


def test_factors_by_which_gangs_do_not_differ_are_not_searched(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _tune(trace, "--allow", "worth.fairShare=0..96h,worth.class=0..96h") is Exit.FAILED
    told = capsys.readouterr().out
    assert "not searched  worth.fairShare: all gangs are of one user" in told
    assert "nothing that is allowed makes a difference to these gangs" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--allow", "worth.clas=0..1h"), '--allow "worth.clas" cannot be searched'),
        (("--objectives", "median"), '"median" is not an objective; these are mean, large'),
        (("--objectives", "mean,mean"), "must name each objective once"),
        (("--limit", "large=many"), "--limit must be a number of percent"),
        (("--candidates", "0"), "--candidates must be a whole number from 1 to 1000"),
        (("--judge-from", "tomorrow"), "--judge-from must be a day such as 2026-03-01"),
        (("--judge-from", "2026-03-02"), "at least two days to train on and two to judge on"),
        (("--to", "2026-02-01"), "has no gang in that time"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    arguments: tuple[str, ...], message: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _tune(trace, *arguments) is Exit.USAGE
    assert message in capsys.readouterr().err


def test_problems_of_documents_are_printed(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trace.parent / "current.yaml").write_text(f"{HEAD}Queues\nlevels: []\n")
    assert _tune(trace) is Exit.FAILED
    assert "levels" in capsys.readouterr().err


def test_the_flags_name_all_objectives() -> None:
    assert ",".join(Objective) == OBJECTIVES
