"""Words for people: safe to print, and always the same."""

from datetime import datetime, timedelta, timezone

import pytest

from policy.wording import describe, join_path, moment, plain, quote


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("two\n lines\t", "two lines"),
        ("bell\x07", "bell?"),
        ("0123456789", "0123456789"),
        ("0123456789a", "012345678…"),
        (" " * 50 + "a", "…"),
    ],
)
def test_a_foreign_text_is_made_one_printable_line(text: str, shown: str) -> None:
    assert plain(text, limit=10) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", '"a"'),
        ('a"b\n', '"a\\"b\\n"'),
        ("\ud800\u0378", '"\\ud800\\u0378"'),
        ("x" * 61, '"' + "x" * 59 + '…"'),
    ],
)
def test_a_value_is_quoted_and_cut(text: str, shown: str) -> None:
    assert quote(text) == shown


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), ""),
        (("rules", 2, "occupiedHigh"), "rules[2].occupiedHigh"),
        (("a b", 0, "c.d"), '["a b"][0]["c.d"]'),
    ],
    ids=str,
)
def test_a_path_is_written_as_people_write_it(parts: tuple[str | int, ...], path: str) -> None:
    assert join_path(parts) == path


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (False, "false"),
        (3, "3"),
        (10**5_000, "a number of more than 63 bits"),
        (1.5, "1.5"),
        ("x", '"x"'),
        ([], "a list"),
        ({}, "a mapping"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else type(value).__name__,
)
def test_a_value_is_described(value: object, shown: str) -> None:
    assert describe(value) == shown


def test_a_time_has_one_form() -> None:
    east = timezone(timedelta(hours=2))
    assert moment(datetime(2026, 3, 1, 14, 0, 0, 999_999, tzinfo=east)) == "2026-03-01T12:00:00Z"
    assert moment(0.9) == "1970-01-01T00:00:00Z"
