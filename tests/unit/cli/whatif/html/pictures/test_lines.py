"""Pictures of values over time."""

import pytest

from cli.whatif.html.pictures.lines import Steps, line_picture
from tests.support.whatif.pages import read_page


def test_the_average_weighs_stretches_by_their_length() -> None:
    assert Steps("before", [0, 10], [6, 3], 40).mean == 3.75
    assert Steps("before", [], [], 40).mean == 0


def test_many_points_become_few_with_the_same_average() -> None:
    steps = Steps("after", list(range(1000)), [index % 7 for index in range(1000)], 1000)
    thin = steps.thinned(100)
    assert len(thin.begins) == 100
    assert thin.mean == pytest.approx(steps.mean)


def test_a_line_is_drawn_in_steps_up_to_its_end() -> None:
    steps = Steps("before", [0, 50], [10, 0], 100)
    page = read_page(line_picture([steps], told="Use.", height=122))
    paths = [path.attributes["d"] for path in page.all("path")]
    assert paths == ["M0 38.46H500L500 1000H1000"]


@pytest.mark.parametrize("lines", [[], [Steps("before", [5.0], [0.0], 5.0)]], ids=["none", "0 s"])
def test_a_picture_of_nothing_is_a_picture(lines: list[Steps]) -> None:
    page = read_page(line_picture(lines, told="Nothing.", height=100))
    (picture,) = (svg for svg in page.all("svg") if svg.attributes.get("role") == "img")
    assert picture.attributes["aria-label"] == "Nothing."
