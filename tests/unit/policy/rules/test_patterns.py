"""Patterns: found anywhere, in linear time, and many of them at once."""

import pytest

from policy.rules import patterns
from policy.rules.patterns import Pattern, PatternIndex, parse_pattern


@pytest.mark.parametrize(
    ("source", "text", "is_found"),
    [
        ("fa", "alfa_1", True),
        ("^fa", "alfa_1", False),
        ("^fa.*", "fa_1", True),
        ("prod|test", "my-test", True),
        ("^user$", "user\n", False),
        ("(?i)ALICE", "alice", True),
        ("é", "café", True),
        ("^.$", "é", True),
        ("", "", True),
    ],
)
def test_a_pattern_is_found_anywhere_unless_anchored(
    source: str, text: str, is_found: bool
) -> None:
    assert parse_pattern(source).found_in(text) is is_found


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("(a", 'is not a valid regular expression: missing ) in "(a"'),
        ("*", 'is not a valid regular expression: no argument for repetition operator in "*"'),
        ("(?=a)", 'is not a valid regular expression: invalid perl operator in "(?="'),
        (r"(a)\1", 'is not a valid regular expression: invalid escape sequence in "\\\\1"'),
        (
            "(a{1000}){1000}",
            'is not a valid regular expression: invalid repetition size in "{1000}"',
        ),
        (r"\pL{99}", "is not a valid regular expression: pattern too large - compile failed"),
        ("a" * 4097, "is 4097 characters long; at most 4096 are allowed"),
        (17, "must be a regular expression in quotes, not 17"),
        (["a"], "must be a regular expression in quotes, not a list"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_searched_is_refused_in_plain_words(source: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is 4097|must be") as raised:
        parse_pattern(source)
    assert str(raised.value) == problem


def test_nothing_is_written_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="not a valid"):
        parse_pattern("(a")
    assert capfd.readouterr() == ("", "")


def _places(index: PatternIndex, text: str) -> list[int]:
    return [place for place in range(8) if index.places(text) >> place & 1]


SOURCES = ["^a", None, "b$", "^a", "b", None, "^$", "(?i)X"]


def _parsed(sources: list[str | None]) -> list[Pattern | None]:
    return [None if source is None else parse_pattern(source) for source in sources]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("ab", [0, 1, 2, 3, 4, 5]),
        ("bc", [1, 4, 5]),
        ("", [1, 5, 6]),
        ("x", [1, 5, 7]),
        ("\udc80", [1, 5]),
    ],
    ids=["both ends", "inside", "empty text", "by flag", "not Unicode"],
)
def test_an_index_finds_all_patterns_at_once(text: str, places: list[int]) -> None:
    assert _places(PatternIndex(_parsed(SOURCES)), text) == places


def test_an_index_too_large_for_one_automaton_still_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "_INDEX_BYTES", 1)
    index = PatternIndex(_parsed(SOURCES))
    assert [_places(index, text) for text in ("ab", "bc", "x")] == [
        [0, 1, 2, 3, 4, 5],
        [1, 4, 5],
        [1, 5, 7],
    ]


@pytest.mark.parametrize(
    ("texts", "places"),
    [((), [1, 5]), (("ab", "x"), [0, 1, 2, 3, 4, 5, 7])],
    ids=["no text", "two texts"],
)
def test_an_index_finds_patterns_in_any_of_several_texts(
    texts: tuple[str, ...], places: list[int]
) -> None:
    found = PatternIndex(_parsed(SOURCES)).places_any(texts)
    assert [place for place in range(8) if found >> place & 1] == places


def test_an_index_without_patterns_finds_every_place() -> None:
    assert PatternIndex([None, None]).places("any") == 0b11
