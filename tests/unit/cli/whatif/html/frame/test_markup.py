"""Tags and escaped text."""

import pytest

from cli.whatif.html.frame.markup import Markup, join, name_of, number, percent, tag, text


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = tag("b", "1 < 2 & 'x'")
    assert tag("td", inner, "<i>") == "<td><b>1 &lt; 2 &amp; &#x27;x&#x27;</b>&lt;i&gt;</td>"


def test_text_that_was_joined_with_markup_is_text_again() -> None:
    """Operations of Python forget that it was markup: a slip shows tags, and runs nothing."""
    assert type(tag("b", "x") + "y") is str
    assert join([tag("b", "x") + "y"]) == "&lt;b&gt;x&lt;/b&gt;y"


def test_attributes_are_escaped_and_none_is_left_out() -> None:
    built = tag("svg", aria_label='"><script>', class_="a b", height=None, x=1.5)
    assert built == '<svg aria-label="&quot;&gt;&lt;script&gt;" class="a b" x="1.5"></svg>'


def test_a_tag_without_an_end_has_none() -> None:
    assert tag("meta", charset="utf-8") == '<meta charset="utf-8">'
    assert tag("line", x1="0") == '<line x1="0"/>'


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("a\x00b", "a\\u0000b"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u2066b", "a\\u2066b"),
        ("a\ud800b", "a\\ud800b"),
        ("a\ufeffb", "a\\ufeffb"),
        ("a\x1bb", "a\\u001bb"),
    ],
)
def test_characters_that_would_hide_or_turn_text_are_shown(hidden: str, shown: str) -> None:
    assert text(hidden) == shown


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert text("Ünïcode 機械 עברית\tand\nlines") == "Ünïcode 機械 עברית\tand\nlines"


def test_a_name_has_its_own_direction() -> None:
    assert name_of("a&b") == Markup("<bdi>a&amp;b</bdi>")


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (-0.001, "0"), (12.5, "12.5"), (1 / 3, "0.33"), (100.0, "100")]
)
def test_coordinates_are_short(value: float, shown: str) -> None:
    assert number(value) == shown


def test_positions_follow_the_width_of_the_picture() -> None:
    assert percent(0.125) == "12.5%"
