"""Which quantities are counts."""

import math

import pytest

from kube.values.quantities import parse_count


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("8", 8),
        (8, 8),
        (8.0, 8),
        ("+8", 8),
        ("-8", -8),
        ("0", 0),
        ("8.", 8),
        ("8.000", 8),
        ("2k", 2_000),
        ("1Ki", 1_024),
        ("1E", 10**18),
        ("1e1", 10),
        ("10e-1", 1),
        ("8000m", 8),
        ("0.5Ki", 512),
        (".5k", 500),
        ("1000000u", 1),
        ("3000000000n", 3),
    ],
    ids=str,
)
def test_whole_quantities_are_counted(value: object, count: int) -> None:
    assert parse_count(value) == count


@pytest.mark.parametrize(
    "value",
    [
        "",
        ".",
        "k",
        "1.5",
        "1500m",
        0.5,
        "8 ",
        " 8",
        "8x",
        "0x8",
        "1ki",
        "1Ki2",
        "1e",
        "1e999",
        "٣",
        "9" * 5_000,
        math.nan,
        math.inf,
        True,
        None,
        [],
        {},
    ],
    ids=lambda value: str(value)[:10] or "empty",
)
def test_anything_else_is_no_count(value: object) -> None:
    assert parse_count(value) is None
