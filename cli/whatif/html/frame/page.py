"""The frame of a page: style, security policy, title, contents. No script, and no address."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cli.whatif.html.frame.markup import Markup, join, tag


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, which its contents name."""

    key: str
    title: str
    content: Markup


def format_page(*, title: str, headline: str, subtitle: Markup, sections: Sequence[Section]) -> str:
    """Build the complete file. Browsers apply the one style sheet in it, and load nothing."""
    style = Markup(_style())
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_security_policy(style)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        # Without it a browser asks a web server for an icon.
        tag("link", rel="icon", href="data:,"),
        tag("style", style),
    )
    shown = [section for section in sections if section.content]
    body = tag(
        "body",
        tag("header", tag("p", title, class_="kicker"), tag("h1", headline), subtitle),
        _contents(shown),
        tag("main", *(_section(section) for section in shown)),
        tag("footer", tag("p", "Written by Cellgate. This file needs no network and no script.")),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _contents(sections: Sequence[Section]) -> Markup:
    links = (tag("li", tag("a", one.title, href=f"#{one.key}")) for one in sections)
    return tag("nav", tag("ul", *links), aria_label="Contents")


def _section(section: Section) -> Markup:
    title = tag("h2", section.title, id=f"{section.key}-title")
    return tag(
        "section",
        join((title, section.content)),
        id=section.key,
        aria_labelledby=f"{section.key}-title",
    )


def _security_policy(style: str) -> str:
    """Allow the one style sheet and the empty icon, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"style-src 'sha256-{digest}'; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")
