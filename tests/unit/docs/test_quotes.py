"""What the documents quote exists: messages, log lines, Events, metrics, marks, headings.

A message is quoted as a code span with placeholders: `rule <n> lowers class <a> to <b>`. Its
constant parts must be texts of the product. When a message is reworded, correct the document.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from extender.cells.model import ReasonCode
from kube import marks

_ROOT: Final = Path(__file__).parents[3]
_PACKAGES: Final = ("policy", "extender", "webhook", "state", "kube", "certs", "cli", "service")
_PAGES: Final = [
    *sorted((_ROOT / "docs").glob("*.md")),
    _ROOT / "README.md",
    _ROOT / "CHANGELOG.md",
    _ROOT / "CONTRIBUTING.md",
]
_SPAN: Final = re.compile(r"`([^`\n]+)`")
_PLACEHOLDER: Final = re.compile(r"<[a-z ]+>")


@cache
def _texts() -> frozenset[str]:
    """Every constant text of the product, the constant parts of f-strings included."""
    found = set()
    for package in _PACKAGES:
        for path in (_ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.add(node.value)
    return frozenset(found)


@cache
def _log_messages() -> frozenset[str]:
    """The first argument of every call of a logger."""
    found = set()
    for package in _PACKAGES:
        for path in (_ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and node.args:
                    first = node.args[0]
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        found.add(first.value)
    return frozenset(found)


def _parts(quote: str) -> Iterator[str]:
    for part in _PLACEHOLDER.split(quote):
        if len(part.strip(" ;:,.")) > 2:
            yield part.strip()


def _page(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_quoted_messages_are_those_of_the_product(path: Path) -> None:
    spans = _SPAN.findall(_without_blocks(path.read_text()))
    quotes = [span for span in spans if _PLACEHOLDER.search(span)]
    missing = [
        f"{quote}: {part!r}"
        for quote in quotes
        for part in _parts(quote)
        if not any(part in text for text in _texts())
    ]
    assert missing == [], "the product says something else: correct the document"


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_quoted_log_lines_are_written(path: Path) -> None:
    """Written as: log `leadership lost`."""
    text = " ".join(path.read_text().split())
    quoted = re.findall(r"\blog ((?:`[^`]+`(?:, | or | and )?)+)", text)
    messages = [message for group in quoted for message in _SPAN.findall(group)]
    assert [one for one in messages if one not in _log_messages()] == []


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_metrics_exist(path: Path) -> None:
    names = set(re.findall(r"`(cellgate_[a-z_]+[a-z])", path.read_text()))
    assert sorted(name for name in names if not _is_metric(name)) == []


def _is_metric(name: str) -> bool:
    """Some are put together of a prefix and a name; roles of the database look alike."""
    base = name.removesuffix("_total")
    own = base.removeprefix("cellgate_extender_")
    return not _texts().isdisjoint({name, base, own}) or _is_role(name)


def _is_role(name: str) -> bool:
    files = (_ROOT / "state" / "migrations").glob("*.sql")
    return any(re.search(rf"\b{name}\b", file.read_text()) for file in files)


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_labels_and_annotations_exist(path: Path) -> None:
    known = {value for value in vars(marks).values() if isinstance(value, str)}
    named = set(re.findall(r"\bcellgate\.io/[a-z][a-z-]*", path.read_text()))
    others = {"cellgate.io/v", "cellgate.io/template"}  # of documents, and an example of a label
    assert sorted(named - known - others) == []


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_links_to_headings_lead_to_headings(path: Path) -> None:
    """Whether files exist is a test of `tests/architecture`."""
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]*)\)", path.read_text())
    targets = [(path.parent / name if name else path, heading) for name, heading in links]
    assert [
        f"{target.name}#{heading}"
        for target, heading in targets
        if heading not in _headings(target.read_text())
    ] == []


def _headings(text: str) -> set[str]:
    """The anchors that Markdown makes of headings."""
    titles = re.findall(r"^#+ (.+)$", _without_blocks(text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title).strip().lower() for title in titles)
    return {title.replace(" ", "-") for title in plain}


def _without_blocks(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_conditions_of_readiness_exist(path: Path) -> None:
    named = re.findall(r"`waiting for: ([^`<]+)`", path.read_text())
    assert [name for name in named if name not in _texts()] == []


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_documents_name_the_actor(path: Path) -> None:
    vague = r"\b(?:nobody|somebody|anybody|everybody|whoever)\b"
    assert re.findall(vague, path.read_text(), re.IGNORECASE) == []


def test_every_reason_to_wait_is_explained_to_users() -> None:
    text = (_ROOT / "docs" / "submit.md").read_text()
    section = text.partition("### Why a gang waits")[2].partition("\n### ")[0]
    explained = re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)
    assert sorted(explained) == sorted(set(ReasonCode) - {ReasonCode.PREEMPTED})


def test_every_event_of_the_table_is_written() -> None:
    text = (_ROOT / "docs" / "submit.md").read_text()
    section = text.partition("| Event | On |")[2].partition("\n\n")[0]
    reasons = re.findall(r"^\| `([A-Za-z]+)` \|", section, re.MULTILINE)
    assert len(reasons) > 5
    assert [reason for reason in reasons if reason not in _texts()] == []


@pytest.mark.parametrize("path", _PAGES, ids=_page)
def test_events_that_a_page_names_are_written(path: Path) -> None:
    named = re.findall(r"\bEvents? `(\w+)`", path.read_text())
    assert [name for name in named if name not in _texts()] == []
