"""Tables: a caption, heads with their scope, and a part that unfolds where there are many rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cli.whatif.html.frame.markup import Markup, join, tag

SHOWN_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column, and how its cells are set."""

    head: str
    kind: str | None = None
    """A class of the style sheet: `number` for figures, `picture`, `words`."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of its own class."""

    content: str
    kind: str


Content = str | Cell


def table(
    key: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Content]]
) -> Markup:
    """Build a table that scrolls sideways on narrow screens. The first cell names its row.

    The caption is for programs that read aloud: a heading above says the same to all others.
    """
    head = tag("tr", *(tag("th", c.head, scope="col", class_=c.kind) for c in columns))
    body = join(_row(columns, row) for row in rows)
    title = tag("caption", caption, id=f"{key}-caption", class_="unseen")
    return tag(
        "div",
        tag("table", title, tag("thead", head), tag("tbody", body)),
        class_="scroll",
        role="region",
        aria_labelledby=f"{key}-caption",
        tabindex="0",
    )


def long_table(
    key: str, caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Content]]
) -> Markup:
    """Build a table whose later rows unfold."""
    if len(rows) <= SHOWN_ROWS + 2:
        return table(key, caption, columns, rows)
    rest = rows[SHOWN_ROWS:]
    more = f"{caption}: {len(rest):,} more"
    return join(
        (
            table(key, f"{caption}: the first {SHOWN_ROWS}", columns, rows[:SHOWN_ROWS]),
            unfold(f"{len(rest):,} more", table(f"{key}-more", more, columns, rest)),
        )
    )


def unfold(title: str, content: Markup) -> Markup:
    """Build a part that readers open."""
    return tag("details", tag("summary", title), content)


def _row(columns: Sequence[Column], row: Sequence[Content]) -> Markup:
    first, *rest = row
    cells = [_cell(column, one) for column, one in zip(columns[1:], rest, strict=True)]
    name = first.content if isinstance(first, Cell) else first
    return tag("tr", tag("th", name, scope="row", class_=columns[0].kind), *cells)


def _cell(column: Column, content: Content) -> Markup:
    if isinstance(content, Cell):
        kinds = " ".join(filter(None, (column.kind, content.kind)))
        return tag("td", content.content, class_=kinds)
    return tag("td", content, class_=column.kind)
