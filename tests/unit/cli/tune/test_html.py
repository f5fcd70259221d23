"""The result of a search as an HTML file."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from cli.tune.html import format_tuning_html, save_report
from cli.tune.result import Result
from policy.errors import SettingsError
from tests.support.whatif.comparisons import HOSTILE
from tests.support.whatif.pages import Element, read_page
from tests.support.whatif.tuning import a_tuning_result
from timemachine.tuning.bootstrap import Interval


def _page(result: Result) -> Element:
    return read_page(format_tuning_html(result).replace("\u00a0", " "))


def _headline(result: Result) -> str:
    return next(_page(result).all("h1")).text


def test_the_headline_is_the_verdict() -> None:
    assert _headline(a_tuning_result()) == "With sample 1, the mean wait is 69 % less."
    keep = "No document is better than the current one beyond noise: keep the current one."
    assert _headline(a_tuning_result(is_better=False)) == keep
    unjudged = replace(a_tuning_result(), verdict=None)
    assert _headline(unjudged) == "No document was judged: keep the current one."


def test_finalists_are_told_with_their_intervals() -> None:
    (row,) = (row for row in _page(a_tuning_result()).all("tr") if "\u221279 to" in row.text)
    assert row.children[1].text == "13 h → 4 h\u221279 to \u221259 %"


def test_an_unknown_interval_is_told() -> None:
    result = a_tuning_result()
    assert result.verdict is not None
    first, second = result.verdict.finalists
    unknown = Interval(value=-1.0, low=-inf, high=inf)
    changes = {name: replace(change, difference=unknown) for name, change in first.changes.items()}
    finalists = [replace(first, changes=changes), second]
    text = _page(replace(result, verdict=replace(result.verdict, finalists=finalists))).text
    assert text.count("interval unknown") == 3


def test_vcs_that_are_worse_off_are_marked() -> None:
    result = a_tuning_result()
    assert result.verdict is not None
    worse = replace(result.verdict, finalists=result.verdict.finalists[1:], best=None)
    text = _page(replace(result, verdict=worse)).text
    assert "910worse off" in text
    assert "4too few gangs" in text


def test_every_document_that_was_trained_is_a_point() -> None:
    page = _page(a_tuning_result())
    told = [title.text for title in page.all("title")][1:]
    assert len(told) == 12
    assert told[0] == "sample 1 4 h, 3 d"
    spans = [one for one in page.all("line") if one.attributes.get("class") == "line span"]
    assert len(spans) == 4


def test_the_document_is_shown_if_one_is_better() -> None:
    (shown,) = _page(a_tuning_result()).all("pre")
    assert shown.text.startswith("apiVersion: cellgate.io/v1\nkind: Queues\n")
    assert not list(_page(a_tuning_result(is_better=False)).all("pre"))


@pytest.mark.parametrize(
    "result",
    [
        a_tuning_result(prefix=HOSTILE),
        replace(a_tuning_result(), training=(), verdict=None),
    ],
    ids=["hostile names", "no time"],
)
def test_any_result_is_a_page_without_scripts(result: Result) -> None:
    assert {one.tag for one in _page(result).all()}.isdisjoint({"script", "img"})
    assert format_tuning_html(result) == format_tuning_html(result)


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--html: cannot write .*: Is a directory"):
        save_report(tmp_path, a_tuning_result())
    save_report(tmp_path / "report.html", a_tuning_result())
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
