"""Reads `queries.sql`: all SQL is in one file and is called by name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from policy.errors import InvariantError

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One statement and its purpose."""

    purpose: str
    sql: str


def parse_queries(text: str) -> dict[str, Query]:
    """Parse blocks of `-- name: …`, one line of purpose and one statement."""
    _, *parts = _NAME.split(text)
    names, blocks = parts[::2], parts[1::2]
    if len(set(names)) != len(names):
        raise InvariantError("two queries have the same name")
    return {name: _parse_block(name, block) for name, block in zip(names, blocks, strict=True)}


def _parse_block(name: str, block: str) -> Query:
    purpose, _, sql = block.strip().partition("\n")
    if not purpose.startswith("-- ") or not sql.strip():
        raise InvariantError(f"query {name} needs one line of purpose and a statement")
    return Query(purpose=purpose.removeprefix("-- "), sql=sql.strip())


QUERIES: Mapping[str, Query] = parse_queries(
    Path(__file__).with_name("queries.sql").read_text(encoding="utf-8")
)


def sql(name: str) -> str:
    """Return the statement of that name."""
    return QUERIES[name].sql
