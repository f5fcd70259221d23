"""Tags and text of HTML and SVG. Whatever is not `Markup` is text, and is escaped."""

import html
import re
from collections.abc import Iterable
from typing import Final

_VOID: Final = frozenset({"meta", "link", "br", "line", "circle", "rect", "path", "polyline"})
# Controls, lone surrogates, and marks that turn the direction of what follows: they would hide or
# scramble the text around a name.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufffe\uffff]"
)


class Markup(str):
    """HTML that is put into the page as it is."""

    __slots__ = ()


def text(value: str) -> Markup:
    """Escape text, and show characters that would be invisible as `\\u202e`."""
    shown = _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)
    return Markup(html.escape(shown))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Build an element: `tag("td", "12", class_="number")`. Attributes that are None are left out.

    Underscores in names of attributes stand for hyphens.
    """
    start = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Markup(f"<{start}>" if name in ("meta", "link", "br") else f"<{start}/>")
    return Markup(f"<{start}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    """Put markup and text together; the text is escaped."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def name_of(value: str) -> Markup:
    """Show the name of a user, a gang or a VC; its direction of writing ends with it."""
    return tag("bdi", value)


def number(value: float) -> str:
    """Write a coordinate: at most two decimals, never `-0`."""
    shown = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown


def percent(share: float) -> str:
    """Write a position between 0 and 1 as a coordinate that follows the width of the picture."""
    return f"{number(share * 100)}%"


def _attribute(key: str, value: str | float | None) -> str:
    if value is None:
        return ""
    shown = value if isinstance(value, str) else number(value)
    return f' {key.rstrip("_").replace("_", "-")}="{text(shown)}"'
