"""Comparisons: how they are written, and what they mean."""

import pytest

from policy.rules.comparison import Comparison, covers, parse_comparison


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("> 4", Comparison(">", 4)),
        (">4", Comparison(">", 4)),
        ("  >=  2 ", Comparison(">=", 2)),
        ("< 3", Comparison("<", 3)),
        ("<= 3", Comparison("<=", 3)),
        ("== 8", Comparison("==", 8)),
        ("= 8", Comparison("==", 8)),
        ("!= 8", Comparison("!=", 8)),
        ("4", Comparison(">", 4)),
        (4, Comparison(">", 4)),
        (0, Comparison(">", 0)),
        ("> -1", Comparison(">", -1)),
    ],
    ids=str,
)
def test_a_comparison_is_read(written: object, meant: Comparison) -> None:
    assert parse_comparison(written) == meant


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("4.5", '"4.5"'),
        ("=> 4", '"=> 4"'),
        ("> four", '"> four"'),
        ("> ٤", '"> ٤"'),
        ("> 4 and < 8", '"> 4 and < 8"'),
        (True, "true"),
        (4.0, "4.0"),
        ([4], "a list"),
    ],
    ids=str,
)
def test_anything_else_is_refused_with_an_example(written: object, shown: str) -> None:
    with pytest.raises(ValueError, match="must be") as raised:
        parse_comparison(written)
    assert str(raised.value) == f'must be a comparison such as "> 4" or 4, not {shown}'


@pytest.mark.parametrize(
    ("comparison", "holding"),
    [
        (Comparison(">", 2), [3, 4]),
        (Comparison(">=", 2), [2, 3, 4]),
        (Comparison("<", 2), [0, 1]),
        (Comparison("<=", 2), [0, 1, 2]),
        (Comparison("==", 2), [2]),
        (Comparison("!=", 2), [0, 1, 3, 4]),
    ],
    ids=str,
)
def test_a_comparison_holds_for(comparison: Comparison, holding: list[int]) -> None:
    assert [value for value in range(5) if comparison.holds(value)] == holding


@pytest.mark.parametrize(
    ("comparison", "value", "excess"),
    [
        (Comparison(">", 2), 5, 3),
        (Comparison(">=", 2), 5, 4),
        (Comparison(">", 2), 2, None),
        (Comparison(">", -1), 0, None),
        (Comparison("==", 5), 5, None),
        (Comparison("<", 9), 5, None),
    ],
    ids=str,
)
def test_how_much_less_would_be_enough(
    comparison: Comparison, value: int, excess: int | None
) -> None:
    assert comparison.excess(value) == excess


@pytest.mark.parametrize(
    ("wide", "narrow", "is_covered"),
    [
        (None, Comparison(">", 2), True),
        (Comparison(">", 2), None, False),
        (Comparison(">=", 0), None, True),
        (Comparison(">", 2), Comparison(">", 3), True),
        (Comparison(">", 3), Comparison(">", 2), False),
        (Comparison(">", 2), Comparison(">=", 3), True),
        (Comparison(">", 2), Comparison("==", 3), True),
        (Comparison("!=", 2), Comparison(">", 2), True),
        (Comparison("!=", 2), Comparison(">=", 2), False),
        (Comparison("<", 5), Comparison("!=", 9), False),
    ],
    ids=str,
)
def test_one_comparison_covers_another(
    wide: Comparison | None, narrow: Comparison | None, is_covered: bool
) -> None:
    assert covers(wide, narrow) is is_covered


@pytest.mark.parametrize("sign", [">", ">=", "<", "<=", "==", "!="])
def test_it_is_known_how_far_a_value_can_grow_without_another_answer(sign: str) -> None:
    comparison = Comparison(sign, 3)
    for value in range(7):
        last = comparison.unchanged_up_to(value)
        first_change = next(
            (other for other in range(value, 20)
             if comparison.holds(other) != comparison.holds(value)), None
        )  # fmt: skip
        assert last == (None if first_change is None else first_change - 1)
