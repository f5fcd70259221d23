"""`cellgate import rules FILE`: converts a rule table of another system to a Rules document.

The document goes to standard output. Rows and columns that could not be converted, or that have
another meaning in Cellgate, are reported on standard error.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from cli.check import read_text
from cli.rule_tables import Form, ImportedTable, Row, read_table
from policy.documents.models import API_VERSION
from policy.errors import SettingsError, SpecError
from policy.parser import parse_document
from policy.rules.comparison import parse_comparison
from service.process import Exit, Stop

_FIELDS: Final[Sequence[str]] = ("user", "group", "vc", "priority")
_NUMBERS: Final[Sequence[str]] = ("current", "occupied", "occupiedHigh")
_REST: Final[Sequence[str]] = ("when", "then", "note")
_DEFAULT: Final = "default"
_DEFAULT_CLASS: Final = "test"
"""The class that the original system gives to a task without a class."""

RuleData = dict[str, str]


async def import_table(options: Namespace, _: Stop) -> Exit:
    """Print the Rules document of a table, and remarks about the conversion."""
    table = read_table(read_text(options.file))
    rules, remarks = convert(table)
    text = _write(rules)
    try:
        parse_document(text)
    except SpecError as exc:
        raise SettingsError(f"the table cannot be converted to a Rules document: {exc}") from exc
    print(text, end="")
    for remark in remarks:
        print(f"cellgate: {remark}", file=sys.stderr)
    return Exit.OK


def _write(rules: Sequence[RuleData]) -> str:
    document = {"apiVersion": API_VERSION, "kind": "Rules", "rules": rules}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


def convert(table: ImportedTable) -> tuple[list[RuleData], list[str]]:
    """Convert the rows of a table to rules; remarks list the differences."""
    rules: list[RuleData] = []
    remarks = [*table.remarks]
    for row in table.rows:
        where = f"row {row.get('id', row['number'])}"
        try:
            rules += _check(list(_rules(row, table.form)))
        except ValueError as exc:
            remarks.append(f"{where} was skipped: {exc}")
            continue
        remarks += [f"{where}: {remark}" for remark in _remarks(row, table.form)]
    if table.form is Form.SQL:
        remarks.append(
            "occupiedHigh counts a gang only while its class is high; the original system always "
            "counts it"
        )
    return rules, remarks


def _rules(row: Row, form: Form) -> Iterator[RuleData]:
    """Yield the rule of a row, or two rules if one of two limits was enough to match."""
    rule = {name: _pattern(name, row[name], form) for name in _FIELDS if name in row}
    numbers = {name: str(_comparison(name, row[name])) for name in _NUMBERS if name in row}
    if "then" not in row:
        raise ValueError("it has no new class (then)")
    rest = {name: row[name] for name in _REST if name in row}
    if rest["then"] == _DEFAULT:
        rest["then"] = _DEFAULT_CLASS
    limits = [name for name in ("occupied", "occupiedHigh") if name in numbers]
    if form is Form.SQL and len(limits) == 2:
        for name in limits:
            yield {**rule, name: numbers[name], **rest}
    else:
        yield {**rule, **numbers, **rest}


def _check(rules: list[RuleData]) -> list[RuleData]:
    """Return the rules of one row; ValueError if they are not valid."""
    try:
        parse_document(_write(rules))
    except SpecError as exc:
        problems = (f"{one.path.partition('.')[2]} {one.message}" for one in exc.problems)
        raise ValueError("; ".join(problems)) from exc
    return rules


def _remarks(row: Row, form: Form) -> Iterator[str]:
    if _DEFAULT in (row.get("priority"), row.get("then")):
        yield f"class {_DEFAULT} was replaced by {_DEFAULT_CLASS}, the class of tasks without one"
    if form is Form.SQL and "occupied" in row and "occupiedHigh" in row:
        yield "converted to two rules, since one of its two limits was enough to match"


def _pattern(name: str, text: str, form: Form) -> str:
    if name == "priority":
        text = _classes(text)
    elif name == "vc" and form is Form.SQL:
        # In the original system this is a list of names that may contain the name of the queue.
        names = [re.escape(part) for part in re.split(r"[,/\s]+", text) if part]
        text = f"^({'|'.join(names)})$"
    return text


def _classes(text: str) -> str:
    """Convert a list of classes to a pattern; `default` is the class of a pod without one."""
    names = [name for name in re.split(r"[/,]", text) if name.strip() not in ("", _DEFAULT)]
    return "|".join(name.strip() for name in names) or _DEFAULT_CLASS


def _comparison(name: str, text: str) -> str:
    try:
        return str(parse_comparison(text))
    except ValueError as exc:
        raise ValueError(f"{name} {exc}") from exc
