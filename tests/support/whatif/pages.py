"""Reads an HTML file as a browser would: its elements, its texts, and what it points at."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "img", "input", "hr", "base"}


@dataclass(slots=True)
class Element:
    """An element with its attributes and what is in it."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text in it and in its children."""
        return "".join(self.texts)

    def all(self, tag: str | None = None) -> Iterator["Element"]:
        """Yield this element and all within it, of one tag if one is given."""
        if tag is None or self.tag == tag:
            yield self
        for child in self.children:
            yield from child.all(tag)


def read_page(source: str) -> Element:
    """Read a file; an element that is not closed where it should be is an AssertionError."""
    reader = _Reader()
    reader.feed(source)
    reader.close()
    assert [element.tag for element in reader.open] == [""]
    return reader.open[0]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag}: an attribute twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"{tag} ends within {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)
