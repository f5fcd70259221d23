"""The answer to a capacity question as an HTML file."""

from dataclasses import replace

import pytest

from cli.whatif.html.capacity import format_capacity_html
from tests.support.whatif.capacity import a_capacity_answer
from tests.support.whatif.comparisons import HOSTILE
from tests.support.whatif.pages import Element, read_page
from timemachine.capacity import CapacityAnswer, Goal, Measure


def _page(answer: CapacityAnswer) -> Element:
    return read_page(format_capacity_html(answer).replace("\u00a0", " "))


def _headline(answer: CapacityAnswer) -> str:
    return next(_page(answer).all("h1")).text


@pytest.mark.parametrize(
    ("waits", "told"),
    [
        ([9e4, 5e3], "8 more A100 nodes of 8 leaf cells are enough"),
        ([9e4, 8e3], "32 more A100 nodes of 8 leaf cells are not enough"),
        ([100.0, 0.0], "No more A100 nodes of 8 leaf cells are needed"),
    ],
)
def test_the_headline_is_the_answer(waits: list[float], told: str) -> None:
    headline = _headline(a_capacity_answer(waits))
    assert headline == f"{told} for a p95 wait in VC lab of at most 2 h."


def test_a_goal_of_all_gangs_names_no_vc() -> None:
    goal = Goal(measure=Measure.MEAN, seconds=600.0)
    assert _headline(replace(a_capacity_answer(), goal=goal)).endswith(
        "are enough for a mean wait of at most 10 min."
    )


def test_every_number_that_was_tried_is_a_point_and_a_row() -> None:
    page = _page(a_capacity_answer())
    told = [title.text for title in page.all("title")]
    assert told[1:] == [
        "0 nodes: 25 h",
        "8 nodes: 11 h",
        "16 nodes: 3.3 h",
        "24 nodes: 1.8 h",
        "32 nodes: 15 min",
    ]
    rows = [row.text for row in page.all("tr")][1:]
    assert rows[3] == "241921.8 hmet27 min078.0 %"


def test_the_goal_is_a_line_at_its_height_among_the_points() -> None:
    page = _page(a_capacity_answer([7200.0, 3600.0], goal=7200.0))
    goals = [one for one in page.all("line") if one.attributes["class"] == "line goal"]
    (goal,) = (one for one in goals if one.attributes["x2"] == "100%")
    points = [svg for svg in page.all("svg") if any(svg.children) and "y" in svg.attributes]
    first = next(svg for svg in points if svg.children[0].tag == "path")
    assert goal.attributes["y1"] == first.attributes["y"]


def test_points_that_are_enough_look_different() -> None:
    marks = [path.attributes["class"] for path in _page(a_capacity_answer()).all("path")]
    assert marks[2:] == ["mark before"] * 3 + ["mark less"] * 2


@pytest.mark.parametrize(
    "answer",
    [
        a_capacity_answer([]),
        a_capacity_answer([0.0]),
        a_capacity_answer([1e9, 0.0, 3e7]),
        a_capacity_answer(name=HOSTILE),
    ],
    ids=["no steps", "no wait", "years", "hostile name"],
)
def test_any_answer_is_a_page_without_scripts(answer: CapacityAnswer) -> None:
    page = _page(answer)
    assert {one.tag for one in page.all()}.isdisjoint({"script", "img"})
    assert format_capacity_html(answer) == format_capacity_html(answer)


def test_an_answer_without_unknowns_has_no_empty_section() -> None:
    page = _page(replace(a_capacity_answer(), unknown=()))
    assert [one.attributes["id"] for one in page.all("section")] == ["waits"]
