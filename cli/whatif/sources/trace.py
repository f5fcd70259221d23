"""Arrivals from a CSV file: the columns of the Philly trace, and optional ones of our own.

Every line is checked, and all problems are told with their line numbers.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from cli.whatif.sources.played import Played, divide, in_order
from policy.errors import Problem, SpecError
from policy.parser import limit_problems
from policy.submission import DEFAULT_VC, ClassName, GangKey, GroupName, LeafType, UserName, VcName
from policy.wording import count_of, describe, listing, quote
from timemachine.model import Arrival

REQUIRED: Final = ("timestamp", "duration", "num_gpus")
OPTIONAL: Final = ("cluster", "name", "user", "group", "class", "leaf_type", "members")
_UNUSED: Final = ("gpu_time",)
_MOST_SECONDS: Final = 10 * 366 * 86400.0
_MOST_LEAF_CELLS: Final = 1_000_000
_MOST_MEMBERS: Final = 100_000
_LONGEST_NAME: Final = 253
_NAMESPACE: Final = "trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Only gangs that were submitted in this time, in seconds since 1970."""

    since: float
    until: float


def read_trace(
    text: str, *, name: str, node_leaf_cells: int, between: Between | None = None
) -> Played:
    """Read a trace. Raises SpecError with all problems.

    A gang without `members` is divided into whole nodes of so many leaf cells, and a rest.
    """
    rows = csv.DictReader(io.StringIO(text, newline=""), restkey="", strict=True)
    problems, unknown = _check_columns(rows.fieldnames or ())
    if problems:
        raise SpecError(problems)
    arrivals: list[Arrival] = []
    names: Counter[str] = Counter()
    empty = 0
    for line, row in _rows(rows, problems):
        found = _Line(row, f"line {line}", problems).read(line, node_leaf_cells, names)
        if found is None:
            continue
        empty += not found.leaf_cells
        if found.leaf_cells and (
            between is None or between.since <= found.submitted <= between.until
        ):
            arrivals.append(found)
    if problems:
        raise SpecError(limit_problems(problems))
    return Played(
        source=name,
        arrivals=in_order(arrivals),
        notes=tuple(_notes(arrivals)),
        warnings=tuple(_warnings(unknown, empty)),
    )


def _check_columns(columns: Iterable[str]) -> tuple[list[Problem], list[str]]:
    names = [str(one).strip().lstrip("\ufeff") for one in columns]
    known = (*REQUIRED, *OPTIONAL, *_UNUSED)
    missing = [one for one in REQUIRED if one not in names]
    twice = [one for one, count in Counter(names).items() if count > 1 and one in known]
    problems = [Problem("line 1", f"the column {one} is missing") for one in missing]
    problems += [Problem("line 1", f"the column {one} is there twice") for one in twice]
    return problems, [one for one in names if one not in known]


def _rows(
    rows: "csv.DictReader[str]", problems: list[Problem]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the lines that have all columns; a text that is no CSV ends them."""
    rows.fieldnames = [str(one).strip().lstrip("\ufeff") for one in rows.fieldnames or ()]
    while True:
        try:
            row = next(rows, None)
        except csv.Error as exc:
            problems.append(Problem(f"line {rows.line_num + 1}", f"is no CSV: {exc}"))
            return
        if row is None:
            return
        if "" in row or None in row.values():
            problems.append(Problem(f"line {rows.line_num}", "has too many or too few columns"))
        else:
            yield rows.line_num, row


class _Line:
    """One line: its values, or its problems."""

    def __init__(self, row: Mapping[str, str], path: str, problems: list[Problem]) -> None:
        self._row = row
        self._path = path
        self._problems = problems

    def read(self, line: int, node_leaf_cells: int, names: Counter[str]) -> Arrival | None:
        """Return the gang; None if the line has problems."""
        before = len(self._problems)
        submitted = self._value("timestamp", _moment, 0.0)
        seconds = self._value("duration", _seconds, 0.0)
        leaf_cells = self._value("num_gpus", _count(_MOST_LEAF_CELLS), 0)
        members = self._value("members", _count(_MOST_MEMBERS), 0)
        texts = {name: self._value(name, _name, "") for name in OPTIONAL if name != "members"}
        if members and leaf_cells % members:
            what = f"{count_of(leaf_cells, 'leaf cell')} cannot be divided by {members}"
            self._problems.append(Problem(f"{self._path}: members", what))
        if len(self._problems) > before:
            return None
        name = texts["name"] or f"line-{line:06}"
        names[name] += 1
        return Arrival(
            gang=GangKey(_NAMESPACE, name, str(names[name]) if names[name] > 1 else ""),
            submitted=submitted,
            run_seconds=seconds,
            sizes=divide(leaf_cells, members=members, node_leaf_cells=node_leaf_cells),
            user=UserName(texts["user"]),
            requested_class=ClassName(texts["class"]),
            groups=(GroupName(texts["group"]),) if texts["group"] else (),
            vc=VcName(texts["cluster"]) or DEFAULT_VC,
            leaf_type=LeafType(texts["leaf_type"]) if texts["leaf_type"] else None,
        )

    def _value(self, column: str, read: Callable[[str], Any], default: Any) -> Any:  # noqa: ANN401
        text = self._row.get(column, "").strip()
        if not text and column in OPTIONAL:
            return default
        try:
            return read(text)
        except ValueError as exc:
            self._problems.append(Problem(f"{self._path}: {column}", str(exc)))
            return default


def _moment(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if isfinite(seconds) and abs(seconds) < 253402300800.0:
            return seconds
    try:
        found = datetime.fromisoformat(text)
    except ValueError as exc:
        forms = "a time such as 2026-03-01T12:00:00Z, or seconds since 1970"
        raise ValueError(f"must be {forms}, not {describe(text)}") from exc
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"must be a number of seconds of at most ten years, not {describe(text)}")
    return seconds


def _count(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = text.removesuffix(".0")
        is_number = number.isascii() and number.isdecimal() and len(number) <= len(str(most))
        if not is_number or int(number) > most:
            raise ValueError(f"must be a whole number up to {most:,}, not {describe(text)}")
        return int(number)

    return read


def _name(text: str) -> str:
    if len(text) > _LONGEST_NAME or not text.isprintable():
        raise ValueError(f"must be at most {_LONGEST_NAME} printable characters, not {quote(text)}")
    return text


def _notes(arrivals: list[Arrival]) -> Iterator[str]:
    yield "The trace has no labels, deadlines and run times that owners expected."
    if not any(one.user for one in arrivals):
        yield "The trace names no users: rules and quotas take all gangs for those of one user."


def _warnings(unknown: list[str], empty: int) -> Iterator[str]:
    if unknown:
        yield f"columns without a meaning are not read: {listing(list(map(quote, unknown)))}"
    if empty:
        yield f"{count_of(empty, 'line')} without leaf cells are left out"
