"""`cellgate import rules FILE`: converts a rule table of another system to a Rules document.

Remarks say which rows and columns could not be converted or have another meaning in Cellgate.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from cli.imports.kinds import Occupied
from cli.imports.rule_tables import Form, ImportedTable, Row, read_table
from policy.documents.models import API_VERSION
from policy.errors import SettingsError, SpecError
from policy.parser import parse_document
from policy.rules.comparison import parse_comparison

_FIELDS: Final[Sequence[str]] = ("user", "group", "vc", "priority")
_NUMBERS: Final[Sequence[str]] = ("current", "occupied", "occupiedHigh", "occupiedLow")
_REST: Final[Sequence[str]] = ("when", "then", "note")
_DEFAULT: Final = "default"
_DEFAULT_CLASS: Final = "test"
"""The class that the original system gives to a task without a class."""
_LOW_CLASSES: Final = ("oppo",)
"""The classes of the original system that are not high."""
_LIST: Final = re.compile(r"[/,|]")

RuleData = dict[str, str]


def convert_rules(text: str, occupied: Occupied) -> tuple[str, list[str]]:
    """Return the Rules document of a table, and remarks. Raises SettingsError for other texts."""
    rules, remarks = convert(read_table(text), occupied)
    document = _write(rules)
    try:
        parse_document(document)
    except SpecError as exc:
        raise SettingsError(f"the table cannot be converted to a Rules document: {exc}") from exc
    return document, remarks


def _write(rules: Sequence[RuleData]) -> str:
    document = {"apiVersion": API_VERSION, "kind": "Rules", "rules": rules}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000)


def convert(
    table: ImportedTable, occupied: Occupied = Occupied.LOW
) -> tuple[list[RuleData], list[str]]:
    """Convert the rows of a table to rules; remarks list the differences."""
    rules: list[RuleData] = []
    skipped: list[str] = []
    told: dict[str, list[str]] = {}
    for row in table.rows:
        number = row.get("id", row["number"])
        try:
            rules += _check(list(_rules(row, table.form, occupied)))
        except ValueError as exc:
            skipped.append(f"row {number} was skipped: {exc}")
            continue
        for remark in _remarks(row, table.form, occupied):
            told.setdefault(remark, []).append(number)
    remarks = [*table.remarks, *skipped, *(_of_rows(*one) for one in told.items())]
    if table.form is Form.SQL:
        remarks.append(
            "occupiedHigh counts a gang only while its class is high; the original system always "
            "counts it"
        )
    return rules, remarks


def _of_rows(remark: str, numbers: Sequence[str]) -> str:
    return f"row{'s'[: len(numbers) > 1]} {', '.join(numbers)}: {remark}"


def _rules(row: Row, form: Form, occupied: Occupied) -> Iterator[RuleData]:
    """Yield the rule of a row, or two rules if one of two limits was enough to match."""
    rule = {name: _pattern(name, row[name], form) for name in _FIELDS if name in row}
    read = _as_low(row) if _counts_low(row, occupied) else row
    numbers = {name: str(_comparison(name, read[name])) for name in _NUMBERS if name in read}
    if "then" not in row:
        raise ValueError("it has no new class (then)")
    rest = {name: row[name] for name in _REST if name in row}
    if rest["then"] == _DEFAULT:
        rest["then"] = _DEFAULT_CLASS
    limits = [name for name in ("occupied", "occupiedLow", "occupiedHigh") if name in numbers]
    if form is Form.SQL and len(limits) == 2:
        for name in limits:
            yield {**rule, name: numbers[name], **rest}
    else:
        yield {**rule, **numbers, **rest}


def _counts_low(row: Row, occupied: Occupied) -> bool:
    """Whether the occupied column of a row counts low classes only."""
    if occupied is Occupied.TOTAL or "occupied" not in row or "occupiedLow" in row:
        return False
    names = [name.strip("^$() ") for name in _LIST.split(row.get("priority", ""))]
    return all(name in _LOW_CLASSES for name in names)


def _as_low(row: Row) -> Row:
    return {("occupiedLow" if name == "occupied" else name): value for name, value in row.items()}


def _check(rules: list[RuleData]) -> list[RuleData]:
    """Return the rules of one row; ValueError if they are not valid."""
    try:
        parse_document(_write(rules))
    except SpecError as exc:
        problems = (f"{one.path.partition('.')[2]} {one.message}" for one in exc.problems)
        raise ValueError("; ".join(problems)) from exc
    return rules


def _remarks(row: Row, form: Form, occupied: Occupied) -> Iterator[str]:
    classes = row.get("priority", "")
    is_replaced = _DEFAULT in _names(classes) and _DEFAULT_CLASS not in _names(classes)
    if is_replaced or row.get("then") == _DEFAULT:
        yield f"class {_DEFAULT} was replaced by {_DEFAULT_CLASS}, the class of tasks without one"
    elif _DEFAULT in _names(classes):
        without = f"{_DEFAULT_CLASS}, the class of tasks without one, is listed beside it"
        yield f"class {_DEFAULT} was left out of {classes}: {without}"
    if _counts_low(row, occupied):
        yield (
            "occupied was read as occupiedLow, because the row matches low classes only; with "
            "--occupied total it counts all classes"
            + (", as the program does that wrote the dump" if form is Form.SQL else "")
        )
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


def _names(text: str) -> list[str]:
    """Split a list of classes."""
    return [name.strip() for name in re.split(r"[/,]", text) if name.strip()]


def _classes(text: str) -> str:
    """Convert a list of classes to a pattern; `default` is the class of a pod without one."""
    names = [_DEFAULT_CLASS if name == _DEFAULT else name for name in _names(text)]
    return "|".join(dict.fromkeys(names))


def _comparison(name: str, text: str) -> str:
    try:
        return str(parse_comparison(text))
    except ValueError as exc:
        raise ValueError(f"{name} {exc}") from exc
