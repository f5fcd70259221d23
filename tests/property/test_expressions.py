"""Expressions and patterns at random: they answer, or say why not, and never anything else."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from policy.rules.expression import (
    VARIABLES,
    EvaluationError,
    Expression,
    build_inputs,
    parse_expression,
)
from policy.rules.patterns import Pattern, PatternIndex, parse_pattern

INPUTS = build_inputs({**VARIABLES, "labels": {"a": "b"}, "current": 9223372036854775807})

tokens = st.sampled_from(
    [*VARIABLES, "'a'", '"b"', "r'\\'", "1", "-1", "1u", "1.5", "true", "null", "b'x'", "g",
     "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "!", "-", "+", "*", "/", "%", "==", "!=",
     "<", ">=", "&&", "||", " in ", "exists", "all", "map", "has", "size", "matches", "int",
     "string", "type", "dyn", "timestamp", "//", "\n", "\\", "`", "@", "\x00", "é", "\ud800"]
)  # fmt: skip
# Every other piece fits together, so that many expressions get past the parser.
clauses = st.sampled_from(
    ["user == 'a'", "'a' in groups", "labels.a == 'b'", "labels[user] == 'b'", "current + 1 > 2",
     "1 / (current - current) == 1", "groups.exists(g, g.matches('^g'))", "int(user) > 1",
     "labels.all(k, labels[k] == 'b')", "user.matches(labels.a)", "size(groups) > gangSize"]
)  # fmt: skip
sources = st.one_of(
    st.lists(tokens, max_size=14).map("".join),
    st.lists(clauses, min_size=1, max_size=4).map(" && ".join),
    st.lists(clauses, min_size=1, max_size=4).map(" || ".join),
    st.tuples(clauses, tokens, clauses).map("".join),
)


@given(source=sources)
def test_an_expression_is_refused_or_answers_or_says_why_not(source: str) -> None:
    expression: Expression | None = None
    with suppress(ValueError):
        expression = parse_expression(source)
    if expression is not None:
        with suppress(EvaluationError):
            assert expression.holds(INPUTS) in (True, False)


pieces = st.sampled_from(
    ["a", "b", "ab", ".", "^", "$", "*", "+", "?", "|", "(", ")", "[ab]", "[^a]", "{2}", "(?i)",
     "\\b", "\\d", "\\pL", "\\", "é", "\n", "(?s)", "\\x", "\ud800"]
)  # fmt: skip


def _parse(source: str) -> Pattern | None:
    with suppress(ValueError):
        return parse_pattern(source)
    return None


patterns = st.lists(pieces, max_size=6).map("".join).map(_parse)


@given(
    indexed=st.lists(patterns, max_size=8),
    text=st.text(st.sampled_from("abAB1 é\n\ud800"), max_size=8),
)
def test_searching_all_patterns_at_once_finds_what_searching_each_finds(
    indexed: list[Pattern | None], text: str
) -> None:
    places = PatternIndex(indexed).places(text)
    each = [pattern is None or pattern.found_in(text) for pattern in indexed]
    assert [bool(places >> place & 1) for place in range(len(indexed))] == each
