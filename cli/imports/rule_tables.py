"""Reads rule tables of another system: Markdown tables, CSV or an SQL dump. Pure.

The known columns are those of the rule system that Cellgate's rules follow, by their names in its
description (Chinese), in its database and in Cellgate.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from policy.errors import SettingsError

Row = dict[str, str]
"""Non-empty values by Cellgate's name of the column. `number` says which row it is, from 1."""


class Form(StrEnum):
    """The format of a table, which also determines the meaning of its numbers and lists."""

    MARKDOWN = "Markdown"
    CSV = "CSV"
    SQL = "SQL"


@dataclass(slots=True)
class ImportedTable:
    """Rows in the order in which they are matched."""

    form: Form
    rows: list[Row]
    remarks: list[str] = field(default_factory=list)
    """What could not be converted, or has another meaning in Cellgate."""
    read: int = 0
    """The number of rows, including skipped ones; of the last table, if there are several."""
    part: str = ""
    """Which of several tables is being read, as it follows the number of a row."""


_NAMES: Final = {
    "user": ("user", "username", "username_match", "用户名"),
    "group": ("group",),
    "vc": ("vc", "queue", "队列"),
    "priority": ("priority", "class", "current_priority", "original priority", "原始优先级"),
    "current": ("current", "当前任务资源"),
    "occupied": ("occupied", "common_occupied_gpu_limit", "已占用资源"),
    "occupiedLow": ("occupiedlow",),
    "occupiedHigh": ("occupiedhigh", "high_priority_occupied_gpu_limit", "已占用高优先级资源"),
    "when": ("when",),
    "then": ("then", "changed_priority", "变更后的优先级"),
    "note": ("note", "fail_tips", "变更说明"),
    "id": ("id", "rule_id"),
}
_COLUMNS: Final = {name: ours for ours, names in _NAMES.items() for name in names}
_MARKDOWN_RULE: Final = re.compile(r"\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?)?")
_TABLE: Final = r"(?:[`\"]?\w+[`\"]?\.)?[`\"]?(\w+)[`\"]?"
_INSERT: Final = re.compile(
    rf"(?:insert(?:\s+ignore)?|replace)\s+into\s+{_TABLE}\s*(\([^)]*\))?\s*values\s*", re.I
)
_CREATE: Final = re.compile(rf"create\s+table\s+(?:if\s+not\s+exists\s+)?{_TABLE}", re.I)
_ID: Final = re.compile(r"[0-9]{1,18}")
_DELIMITERS: Final = ",;\t"
_NO_COLUMN: Final = r"(?:primary|unique|key|index|constraint|fulltext|spatial|foreign|check)\b"
_COLUMN: Final = re.compile(rf"\s*(?:[`\"](\w+)[`\"]|(?!{_NO_COLUMN})(\w+))\s", re.I)
_SINGLE: Final = r"'((?:[^'\\]|\\.|'')*)'"
_DOUBLE: Final = r'"((?:[^"\\]|\\.|"")*)"'
_SQL_VALUE: Final = re.compile(rf"\s*(?:{_SINGLE}|{_DOUBLE}|([^,()'\"\s]+))\s*([,)])", re.S)
_SQL_ESCAPE: Final = re.compile(r"\\(.)|''|\"\"", re.S)
_SQL_COMMENT: Final = re.compile(rf"{_SINGLE}|{_DOUBLE}|--\s[^\n]*|#[^\n]*|/\*.*?\*/", re.S)
_SQL_BREAK: Final = re.compile(rf"{_SINGLE}|[(),]", re.S)
_SQL_GAP: Final = re.compile(r"[\s,]*")
_SQL_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "0": "\0", "Z": "\x1a"}
_SQL_COLUMNS: Final = (
    "rule_id",
    "username_match",
    "VC",
    "current_priority",
    "common_occupied_gpu_limit",
    "high_priority_occupied_gpu_limit",
    "changed_priority",
    "fail_tips",
)


def read_table(text: str) -> ImportedTable:
    """Read a table in any of the formats. Raises SettingsError if the text is not a table."""
    text = text.removeprefix("\ufeff")
    if _INSERT.search(text):
        return _read_sql(text)
    lines = text.splitlines()
    heads = [place for place in range(len(lines) - 1) if _is_head(lines, place)]
    return _read_markdown(lines, heads) if heads else _read_csv(text)


def _is_head(lines: Sequence[str], place: int) -> bool:
    """Whether a Markdown table begins here: names of columns, and a ruler below them."""
    is_first = place == 0 or "|" not in lines[place - 1]
    ruler = _MARKDOWN_RULE.fullmatch(lines[place + 1].strip())
    return is_first and bool(lines[place].strip()) and ruler is not None


def _read_markdown(lines: Sequence[str], heads: Sequence[int]) -> ImportedTable:
    """Read all rule tables of a text, one after the other."""
    table = ImportedTable(Form.MARKDOWN, [])
    known = [head for head in heads if "then" in map(_ours, _cells(lines[head]))]
    for number, head in enumerate(heads, start=1):
        if head not in known and known:
            table.remarks.append(f"table {number} is not a rule table and was skipped")
            continue
        names = _known_columns(_cells(lines[head]), table)
        table.part = f" of table {number}" if len(known) > 1 else ""
        table.read = 0
        end = next((other for other in heads if other > head), len(lines))
        for line in filter(str.strip, lines[head + 2 : end]):
            if "|" not in line:
                break
            _add_row(table, names, _cells(line))
    return table


def _cells(line: str) -> list[str]:
    """Split a line of a Markdown table; `\\|` is a literal bar."""
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def _read_csv(text: str) -> ImportedTable:
    table = ImportedTable(Form.CSV, [])
    head = text.lstrip().partition("\n")[0]
    # Spreadsheets write semicolons in locales where the comma is the decimal separator.
    delimiter = max(_DELIMITERS, key=head.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as exc:
        raise SettingsError(f"the file is not a valid CSV table: {exc}") from exc
    lines = [line for line in lines if any(cell.strip() for cell in line)]
    if not lines:
        raise SettingsError("the file is empty; expected a rule table")
    names = _known_columns([cell.strip() for cell in lines[0]], table)
    for line in lines[1:]:
        _add_row(table, names, [cell.strip() for cell in line])
    return _by_id(table)


def _read_sql(text: str) -> ImportedTable:
    table = ImportedTable(Form.SQL, [])
    # Remove comments: they may contain old rules, or be in the middle of a statement.
    text = _SQL_COMMENT.sub(lambda found: found[0] if found[0][0] in "'\"" else " ", text)
    given = _created_columns(text) or list(_SQL_COLUMNS)
    others: list[str] = []
    place = 0
    # Search from the end of the last statement: a note may contain INSERT.
    while match := _INSERT.search(text, place):
        rows, place = _tuples(text, match.end())
        if match[1].lower() != "rules":
            others.append(match[1])
            continue
        columns = re.findall(r"\w+", match[2]) if match[2] else given
        names = _known_columns(columns, table)
        for values in rows:
            _add_row(table, names, values)
    for name in dict.fromkeys(others):
        table.remarks.append(f"table {name} is not a rule table and was skipped")
    return _by_id(table)


def _created_columns(text: str) -> list[str]:
    for match in _CREATE.finditer(text):
        if match[1].lower() == "rules":
            parts = _definitions(text, match.end())
            return [found[1] or found[2] for part in parts if (found := _COLUMN.match(part))]
    return []


def _definitions(text: str, start: int) -> Iterator[str]:
    """Yield the parts of the next parenthesis, split at its own commas."""
    depth, begin = 0, start
    for found in _SQL_BREAK.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 1 and found[0] == "(":
            begin = found.end()
        elif (depth, found[0]) in ((1, ","), (0, ")")):
            yield text[begin : found.start()]
            begin = found.end()
        if depth == 0:
            return


def _tuples(text: str, start: int) -> tuple[list[list[str]], int]:
    """Return the tuples after VALUES, and the position behind them."""
    place, rows = start, []
    while text.startswith("(", place):
        place += 1
        values: list[str] = []
        while found := _SQL_VALUE.match(text, place):
            values.append(_sql_text(found))
            place = found.end()
            if found[4] == ")":
                break
        else:
            raise SettingsError(f"the SQL dump has a syntax error at character {place}")
        rows.append(values)
        gap = _SQL_GAP.match(text, place)
        place = gap.end() if gap else len(text)
    return rows, place


def _sql_text(found: re.Match[str]) -> str:
    quoted = found[2] if found[1] is None else found[1]
    if quoted is not None:
        return _SQL_ESCAPE.sub(_unescape, quoted).strip()
    return "" if found[3].upper() == "NULL" else found[3]


def _unescape(found: re.Match[str]) -> str:
    return found[0][0] if found[1] is None else _SQL_ESCAPES.get(found[1], found[1])


def _known_columns(names: Iterable[str], table: ImportedTable) -> list[str | None]:
    """Translate the names of columns; unknown columns get a remark."""
    known = [_ours(name) for name in names]
    for name, ours in zip(names, known, strict=True):
        if ours is None and name.strip():
            remark = f"column {name.strip()} is unknown and was skipped"
            table.remarks = list(dict.fromkeys([*table.remarks, remark]))
    if "then" not in known:
        raise SettingsError(
            "the file is not a rule table: it has no column for the new class (then)"
        )
    return known


def _ours(name: str) -> str | None:
    return _COLUMNS.get(name.strip().lower())


def _add_row(table: ImportedTable, names: Sequence[str | None], values: Sequence[str]) -> None:
    """Add a row, unless it has too many values, for example because of a bar within a cell."""
    table.read += 1
    if any(values[len(names) :]):
        has = f"it has {len(values)} values for {len(names)} columns"
        hint = r"; write a bar within a cell as \|" if table.form is Form.MARKDOWN else ""
        table.remarks.append(f"row {table.read}{table.part} was skipped: {has}{hint}")
        return
    pairs = zip(names, values, strict=False)
    row = {name: value for name, value in pairs if name is not None and value}
    table.rows.append({"number": f"{table.read}{table.part}", **row})


def _by_id(table: ImportedTable) -> ImportedTable:
    """Sort rows with ids in the matching order of the original system: highest id first."""
    if table.rows and all(_ID.fullmatch(row.get("id", "")) for row in table.rows):
        table.rows.sort(key=lambda row: int(row["id"]), reverse=True)
        table.remarks.append("rules are sorted by descending id, the order of matching")
    return table
