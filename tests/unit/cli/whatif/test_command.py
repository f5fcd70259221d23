"""`cellgate what-if`: what it plays and prints."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.log import progress as progress_of_work
from cli.main import main
from service.exit_codes import Exit
from tests.support.extender.recorded_day import RecordedDay
from tests.support.policy.cluster_texts import derived_text, hived_text
from tests.support.policy.documents import CLASSES_TEXT, HEAD

# Four nodes: of four gangs of two nodes each, two wait, and the small one goes before them.
_TRACE = """\
timestamp,duration,num_gpus,cluster,name,user,class
2026-03-01T00:00:00Z,3600,16,lab,one,alice,prod
2026-03-01T00:01:00Z,3600,16,lab,two,bob,prod
2026-03-01T00:02:00Z,3600,16,lab,three,alice,prod
2026-03-01T00:03:00Z,3600,8,vision,four,carol,test
"""
_SHARED = """\
timestamp,duration,num_gpus,cluster,name,class
2026-03-01T00:00:00Z,3600,16,lab,one,prod
2026-03-01T00:01:00Z,3600,16,vision,two,prod
"""
_RULES = f"{HEAD}Rules\nrules: [{{user: '^alice$', occupied: '> 16', then: fail}}]\n"


@pytest.fixture(autouse=True)
def _no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine even short work takes long enough to show progress."""
    monkeypatch.setattr(progress_of_work, "_FIRST_SECONDS", 3600.0)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(_TRACE)
    (tmp_path / "classes.yaml").write_text(CLASSES_TEXT)
    return path


def _what_if(*arguments: Path | str) -> Exit:
    return main(["what-if", *map(str, arguments)], {})


def _on(trace: Path, *arguments: Path | str) -> Exit:
    classes = trace.parent / "classes.yaml"
    return _what_if("--trace", trace, "--leaf-cells", "32:A100", "--before", classes, *arguments)


def _json(capsys: pytest.CaptureFixture[str]) -> Any:
    told, errors = capsys.readouterr()
    assert errors == ""
    return json.loads(told)


def test_more_nodes_shorten_waits(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _on(trace, "--nodes", "+4:A100", "--json") is Exit.OK
    found = _json(capsys)
    assert found["changed"] == ["4 more nodes of leaf type A100"]
    assert (found["before"]["leafCells"], found["after"]["leafCells"]) == (32, 64)
    assert found["before"]["waits"]["longestSeconds"] >= 3400.0
    assert found["after"]["waits"]["longestSeconds"] == 0.0
    assert [*found["before"]["waitsBy"]["vc"]] == ["lab", "vision"]
    assert {one["gang"] for one in found["gains"]} == {"trace/three", "trace/four"}
    assert found["counts"]["starts-earlier"] == 2


def test_other_rules_refuse_gangs(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = trace.parent / "rules.yaml"
    rules.write_text(_RULES)
    assert _on(trace, "--policy", rules) is Exit.OK
    told, errors = capsys.readouterr()
    assert errors == ""
    lines = told.splitlines()
    assert lines[:2] == [f"4 gangs: {trace}", f"what differs: Rules of {rules}"]
    assert [line.split()[1:] for line in lines if line.startswith("refused ")] == [["0", "1"]]
    assert "  refused after, admitted before  1" in lines
    assert "gangs that gain most" in lines
    assert "what this cannot know" in lines


def test_without_a_change_both_sides_are_the_same(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _on(trace) is Exit.OK
    told = capsys.readouterr().out
    assert "what differs: nothing: both sides are the same\n" in told
    assert "no gang fares differently\n" in told


def test_the_report_is_written(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html = trace.parent / "report.html"
    assert _on(trace, "--nodes", "+1:A100", "--html", html) is Exit.OK
    assert html.read_text().startswith("<!DOCTYPE html>")
    capsys.readouterr()
    assert _on(trace, "--html", trace.parent) is Exit.USAGE
    told = capsys.readouterr()
    assert f"--html: cannot write {trace.parent}: Is a directory" in told.err
    assert told.out == ""


def test_how_many_nodes_are_enough(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = ("--nodes", "+6:A100", "--goal", "vc=lab,longest=1m")
    html = trace.parent / "report.html"
    assert _on(trace, *goal, "--html", html) is Exit.OK
    assert "2 more A100 nodes of 8 leaf cells are enough" in html.read_text()
    told = capsys.readouterr().out.splitlines()
    enough = "2 more A100 nodes of 8 leaf cells are enough for a longest wait of at most 1 min"
    assert told[1] == f"{enough} of VC lab"
    assert [line.split()[0] for line in told[4:] if line.endswith("enough")] == ["2", "3", "4", "6"]


def test_too_few_nodes_are_no_answer(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goal = ("--nodes", "+1:A100", "--goal", "vc=lab,longest=1m")
    assert _on(trace, *goal, "--json") is Exit.FAILED
    found = _json(capsys)
    assert found["enough"] is None
    assert [step["nodes"] for step in found["steps"]] == [0, 1]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--nodes", "+1:H100"], 'no node has leaf type "H100"; the leaf types are A100'),
        (
            ["--nodes", "+1:A100", "--goal", "vc=nowhere,p95=1h"],
            '--goal: no gang has vc "nowhere"; there are "lab", "vision"',
        ),
        (["--from", "2030-01-01", "--to", "2031-01-01"], "has no gang in that time"),
    ],
)
def test_a_question_about_nothing_is_told(
    trace: Path, flags: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _on(trace, *flags) is Exit.USAGE
    assert told in capsys.readouterr().err


def test_all_problems_of_documents_are_told(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = trace.parent / "bad.yaml"
    bad.write_text(f"{HEAD}Rules\nrules: [{{then: nowhere}}, {{user: '(', then: fail}}]\n")
    assert _on(trace, "--policy", bad) is Exit.FAILED
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert all(line.startswith(f"{bad}: rules[") for line in told)
    assert _on(trace, "--cluster", bad) is Exit.FAILED
    rules = trace.parent / "rules.yaml"
    rules.write_text(_RULES)
    capsys.readouterr()
    assert _on(trace, "--cluster", rules) is Exit.FAILED
    assert capsys.readouterr().err == f"{rules}: must have a Cluster document, and no other\n"


def test_all_problems_of_a_trace_are_told(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write_text("timestamp,duration,num_gpus\nx,1,1\n2026-03-01,y,1\n")
    assert _on(trace) is Exit.FAILED
    told = capsys.readouterr().err.splitlines()
    assert [line[:18] for line in told] == ["line 2: timestamp:", "line 3: duration: "]


def test_a_cluster_document_gives_vcs_their_promises(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = trace.parent / "cluster.yaml"
    cluster.write_text(derived_text(lab=3, vision=1))
    assert _on(trace, "--cluster", cluster, "--json") is Exit.OK
    found = _json(capsys)
    assert found["changed"] == [f"Cluster of {cluster}"]
    assert found["after"]["waitsBy"]["vc"]["vision"]["longestSeconds"] == 0.0


def test_a_vc_that_waits_longer_among_others_is_named(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = trace.parent / "cluster.yaml"
    cluster.write_text(derived_text(lab=2, vision=2))
    trace.write_text(_SHARED)
    assert _on(trace, "--cluster", cluster, "--alone", "--json") is Exit.OK
    assert _json(capsys)["anomalies"] == []
    assert _on(trace, "--alone") is Exit.USAGE
    told = "--alone: no VC of these gangs is promised cells after the change"
    assert told in capsys.readouterr().err


def test_a_document_that_lists_its_cells_is_the_cluster(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = trace.parent / "hived.yaml"
    cluster.write_text(hived_text(racks=1, nodes=4, lab=3, vision=1))
    assert _on(trace, "--before", cluster, "--json") is Exit.OK
    assert _json(capsys)["before"]["leafCells"] == 32
    assert _on(trace, "--before", cluster, "--nodes", "+1:A100") is Exit.USAGE
    assert "the Cluster document lists every cell" in capsys.readouterr().err


async def _export(path: Path) -> None:
    day = RecordedDay(cluster=derived_text(a=4, b=3))
    for name in ("one", "two"):
        day.submit(name, 8, 8, 8, class_name="prod")
    day.start("one", 0, 1, 2)
    day.time.advance(hours=1)
    day.end("one")
    day.start("two", 0, 1, 2)
    day.time.advance(hours=1)
    day.end("two")
    await day.export(path)


async def test_a_recorded_day_is_played_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from cli.commands import build_parser
    from service.process import Stop

    path, cluster = tmp_path / "log", tmp_path / "cluster.yaml"
    await _export(path)
    cluster.write_text(derived_text(a=6, b=2))
    arguments = ["what-if", "--file", str(path), "--cluster", str(cluster), "--json"]
    options = build_parser({}).parse_args(arguments)
    assert await options.command(options, Stop()) is Exit.OK
    found = _json(capsys)
    assert found["before"]["waits"]["longestSeconds"] == pytest.approx(3600.0, abs=5.0)
    assert found["after"]["waits"]["longestSeconds"] == 0.0
    reality = "In reality the gangs that started waited 30 min on average; played as it was, "
    assert found["unknown"][-1].startswith(f"{reality}all wait 30 min")
