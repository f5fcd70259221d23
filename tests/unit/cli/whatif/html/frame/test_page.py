"""The frame of pages: the colours of its style sheet, and what is left out."""

import re
from pathlib import Path

import pytest

from cli.whatif.html.frame import page
from cli.whatif.html.frame.markup import Markup, tag
from cli.whatif.html.frame.page import Section, format_page
from tests.support.whatif.pages import read_page

_STYLE = Path(page.__file__).with_name("style.css").read_text()
_TEXT, _GRAPHICS = 4.5, 3.0
"""The contrasts that WCAG 2.2 asks for, level AA."""


def _colours(scheme: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", _STYLE, re.DOTALL)
    text = light if scheme == "light" else dark
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", text))


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "ground"])
def test_texts_and_pictures_stand_out_from_their_ground(scheme: str, ground: str) -> None:
    """axe-core cannot tell the ground of texts in pictures."""
    colours = _colours(scheme)
    texts = {name: colours[name] for name in ("ink", "soft", "after", "less", "more")}
    low = {name for name, own in texts.items() if _contrast(own, colours[ground]) < _TEXT}
    assert low == set()
    assert _contrast(colours["before"], colours[ground]) >= _GRAPHICS


def test_both_schemes_define_the_same_colours() -> None:
    assert _colours("light").keys() == _colours("dark").keys()


def test_a_section_without_content_is_left_out_of_the_page_and_its_contents() -> None:
    sections = (Section("a", "Full", tag("p", "Text")), Section("b", "Empty", Markup("")))
    source = format_page(title="T", headline="H", subtitle=Markup(""), sections=sections)
    read = read_page(source)
    assert [one.attributes["id"] for one in read.all("section")] == ["a"]
    assert [one.attributes["href"] for one in read.all("a")] == ["#a"]
