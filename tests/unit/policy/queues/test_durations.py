"""Durations of documents and annotations."""

import pytest

from policy.queues.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("4h", 14_400), ("1h30m", 5_400), ("7d", 604_800), ("2w", 1209600)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("value", ["", "4", "h", "-1h", "1.5h", "٤h", "1h ", 4, None, [], "53w"])
def test_anything_else_is_refused_in_plain_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"^must be "):
        parse_duration(value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (89.6, "1 min 30 s"),
        (7200, "2 h"),
        (7500, "2 h 5 min"),
        (7529, "2 h 5 min"),
        (3599, "59 min 59 s"),
        (111_600, "31 h"),
        (-7200, "-2 h"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
