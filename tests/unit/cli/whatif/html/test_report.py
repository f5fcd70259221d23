"""The report as browsers, screen readers and people read it."""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from cli.whatif.html.report import format_html
from tests.support.whatif.comparisons import HOSTILE, Shape, a_comparison, an_empty_comparison
from tests.support.whatif.pages import Element, read_page
from timemachine.comparison import ChangeKind, Comparison, Grouping

_SHAPES = {
    "a week": Shape(),
    "twelve minutes": Shape(vcs=3, groups=1, wait=40, days=0.01, points=3, changes=1),
    "200 VCs, waits of weeks": Shape(vcs=200, groups=60, wait=9e5, days=120, points=3000),
    "one point": Shape(points=1, changes=0),
    "hostile names": Shape(prefix=HOSTILE),
    "a larger cluster": Shape(more_leaf_cells=512),
    "empty": None,
}


@cache
def _shaped(name: str) -> Element:
    shape = _SHAPES[name]
    return _page(a_comparison(shape) if shape else an_empty_comparison())


def _page(comparison: Comparison) -> Element:
    return read_page(format_html(comparison))


def _text(comparison: Comparison) -> str:
    return _page(comparison).text.replace("\u00a0", " ")


@pytest.mark.parametrize("name", _SHAPES)
def test_the_file_is_well_formed_and_points_only_into_itself(name: str) -> None:
    page = _shaped(name)
    ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    for element in page.all():
        for name in ("href", "src", "aria-labelledby"):
            if target := element.attributes.get(name):
                assert target.removeprefix("#") in ids or target == "data:,"


@pytest.mark.parametrize("name", _SHAPES)
def test_nothing_in_the_file_runs_or_loads(name: str) -> None:
    page = _shaped(name)
    tags = {element.tag for element in page.all()}
    assert tags.isdisjoint({"script", "img", "iframe", "object", "embed", "base", "form"})
    names = {name for element in page.all() for name in element.attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    (style,) = page.all("style")
    assert not re.search(r"url\(|@import|https?:", style.text)


@pytest.mark.parametrize("name", _SHAPES)
def test_tables_and_pictures_are_told_to_those_who_do_not_see_them(name: str) -> None:
    page = _shaped(name)
    for table in page.all("table"):
        assert next(table.all("caption")).text
        assert all("scope" in head.attributes and head.text for head in table.all("th"))
    for picture in page.all("svg"):
        hidden = picture.attributes.get("aria-hidden") == "true"
        assert hidden or picture.attributes.get("aria-label") or "role" not in picture.attributes


@pytest.mark.parametrize("name", _SHAPES)
def test_headings_have_no_gaps(name: str) -> None:
    levels = [int(one.tag[1]) for one in _shaped(name).all() if re.fullmatch("h[1-6]", one.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_file_can_be_written_whatever_names_hold() -> None:
    assert format_html(a_comparison(Shape(prefix=HOSTILE))).encode()


def test_equal_comparisons_give_equal_bytes() -> None:
    assert format_html(a_comparison()) == format_html(a_comparison())


def test_only_the_style_sheet_of_the_file_is_allowed() -> None:
    (policy,) = (
        meta.attributes["content"]
        for meta in _page(a_comparison()).all("meta")
        if meta.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_a_large_report_stays_small() -> None:
    assert len(format_html(a_comparison(_SHAPES["200 VCs, waits of weeks"]))) < 1_000_000


def test_the_headline_tells_the_gain_and_who_pays_for_it() -> None:
    comparison = a_comparison(Shape(vcs=40))
    after = replace(comparison.after, refused=comparison.before.refused + 3)
    heads = list(_page(replace(comparison, after=after)).all("h1"))
    assert re.fullmatch(
        r"Gangs wait \d+.% less on average, but \d+ of 40 VCs wait longer and 3 more are refused\.",
        heads[0].text,
    )


def test_a_change_for_the_worse_is_the_headline() -> None:
    comparison = a_comparison()
    worse = replace(comparison, before=comparison.after, after=comparison.before)
    assert re.match(r"Gangs wait \d+.% longer on average, and 6 of 6 VCs wait longer", _h1(worse))


def test_a_change_without_effect_is_the_headline() -> None:
    comparison = a_comparison()
    same = replace(comparison, after=comparison.before, counts={})
    assert _h1(same) == "Nothing changes: every gang fares the same."
    moved = replace(same, counts={ChangeKind.PLACED_ELSEWHERE: 1})
    assert _h1(moved) == "On average, gangs wait as long as before."


def test_no_arrivals_are_told() -> None:
    text = _text(an_empty_comparison())
    assert "No gang was admitted: there is nothing to compare." in text
    assert "No use was recorded." in text
    assert "No gang gains." in text
    assert "Every gang fared the same." in text


def test_a_row_of_one_side_only_has_no_figure_on_the_other() -> None:
    comparison = a_comparison(Shape(vcs=2))
    by = {**comparison.after.by, Grouping.VC: {}}
    text = _text(replace(comparison, after=replace(comparison.after, by=by)))
    assert re.search(r"vision\d.* min → \u2013", text)


def test_rows_beyond_the_largest_are_in_a_table_that_unfolds() -> None:
    page = _shaped("200 VCs, waits of weeks")
    tables = {
        caption.text: len(list(table.all("tr")))
        for table in page.all("table")
        for caption in table.all("caption")
    }
    assert tables["Waits by VC, before → after"] == 1 + 1 + 20 + 1
    assert tables["All figures by VC, before → after"] == 1 + 1 + 200


def test_all_gangs_that_are_given_are_listed_with_what_happened() -> None:
    text = _text(a_comparison(Shape(changes=100)))
    assert all(f"starts-later-{index:04}" in text for index in range(100))
    assert "4 h earlier" in text
    assert "4 h later" in text
    assert "class prod, started after 3 h on a0, a1" in text


def test_more_gangs_than_are_listed_are_counted() -> None:
    assert "56 gangs, the first 30 of them listed" in _text(a_comparison())


def test_a_refused_gang_starts_neither_earlier_nor_later() -> None:
    comparison = a_comparison()
    refused = [one for one in comparison.others if one.kind is ChangeKind.REFUSED][:1]
    page = _page(replace(comparison, gains=(), losses=(), others=refused))
    (row,) = (row for row in page.all("tr") if "starts" not in row.text and "bert" in row.text)
    assert row.children[4].text == "\u2013"


def test_vcs_that_are_worse_off_than_alone_are_named() -> None:
    text = _text(a_comparison())
    assert "1 VC waits longer than alone with the promised cells: vision by 2.2 min." in text
    assert "6.7 min shorter" in text


def test_what_a_simulation_cannot_know_is_always_told() -> None:
    assert "run times of 312 of 8,214 gangs are predicted" in _text(a_comparison())
    nothing_known = replace(a_comparison(), unknown=())
    assert "Users would have behaved differently" in _text(nothing_known)


def test_a_larger_cluster_has_both_sizes_in_the_picture() -> None:
    page = _shaped("a larger cluster")
    kinds = {path.attributes.get("class") for path in page.all("path")}
    assert {"line limit", "line limit after"} <= kinds


def _h1(comparison: Comparison) -> str:
    (head,) = _page(comparison).all("h1")
    return head.text


def test_a_grouping_with_one_row_says_nothing_of_its_own() -> None:
    page = _page(a_comparison(Shape(vcs=1, groups=1)))
    heads = [head.text for head in page.all("h3")]
    assert "By group" not in heads
    assert heads.count("By VC") == 3


def test_a_larger_cluster_that_is_used_less_is_not_worse() -> None:
    comparison = a_comparison(Shape(more_leaf_cells=512))
    less = replace(comparison.after, utilisation=0.5)
    page = _page(replace(comparison, after=less))
    (value,) = (one for one in page.all("dd") if one.text == "50.0\u00a0%")
    assert value.attributes["class"] == "value same"
