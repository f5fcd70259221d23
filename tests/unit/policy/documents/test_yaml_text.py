"""YAML: what plain values mean, and what a hostile text cannot do."""

import math

import pytest

from policy.documents.yaml_text import as_written, parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem, SpecError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment\n", None),
        ("---\n...\n", None),
        ("a: 1", {"a": 1}),
        ("{a: 0x1F, b: 0o17, c: 017, d: -3}", {"a": 31, "b": 15, "c": 17, "d": -3}),
        ("[1.5, 1e3, .5, -.inf]", [1.5, 1000.0, 0.5, -math.inf]),
        ("[true, False, null, ~]", [True, False, None, None]),
        ("[yes, on, 1:30, 2024-01-01, 1_0]", ["yes", "on", "1:30", "2024-01-01", "1_0"]),
        ("['1', \"true\", !!str 5]", ["1", "true", "5"]),
        ("{1: a, true: b, null: c}", {"1": "a", "true": "b", "null": "c"}),
        ("a: &x [1, 2]\nb: *x", {"a": [1, 2], "b": [1, 2]}),
        ("{&k key: 1, b: {*k : 2}, c: *k}", {"key": 1, "b": {"key": 2}, "c": "key"}),
        ("a: |\n  line\n", {"a": "line\n"}),
        ("a: " + "9" * 41, {"a": "9" * 41}),
        ("\ufeffa: ü", {"a": "ü"}),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_text_is_read(text: str, value: Plain) -> None:
    assert parse_yaml(text) == (value, [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1,\n", "line 2, column 1: not valid YAML: did not find expected node content"),
        (
            "a: 1\nb: > 4",
            "line 2, column 6: not valid YAML: did not find expected comment or line break; "
            'put a comparison in quotes, as in "> 4"',
        ),
        ("a: 1\n---\nb: 2\n", "line 2, column 1: a second document starts; only one is allowed"),
        ("a: 1\nb: é\x01", "line 2, column 5: not valid YAML: control characters are not allowed"),
        ("a: 1\nbc: \ud800", "line 2, column 5: not a Unicode character"),
        (
            'a: "\\ud800"',
            "line 1, column 7: not valid YAML: found invalid Unicode character escape code",
        ),
        (
            "user: *fa",
            'line 1, column 7: the alias "*fa" is not known; '
            "put a text that starts with * in quotes",
        ),
        ("a: &a [*a]", 'line 1, column 8: the alias "*a" holds itself'),
        ("? [a]\n: 1", "line 1, column 3: a key must be a string"),
        ("[" * 50_000, "line 1, column 34: nested more than 32 deep"),
        ("a: " + "x" * 1_048_576, "the text has 1048579 bytes; at most 1048576 are read"),
        (
            "[" + "a," * 100_001 + "]",
            "line 1, column 200000: more than 100000 values, aliases unfolded",
        ),
        ("%YAML 9.9\n---\na", "line 1, column 1: not valid YAML: found incompatible YAML document"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_text_that_cannot_be_read_says_where(text: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_yaml(text)
    assert raised.value.problems == (Problem("", message),)


def test_an_alias_counts_as_much_as_what_it_stands_for() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(SpecError) as raised:
        parse_yaml("\n".join(lines))
    assert str(raised.value) == "line 6, column 10: more than 100000 values, aliases unfolded"


def test_aliases_cannot_nest_deeper_than_brackets() -> None:
    lines = ["l0: &l0 []"] + [f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 40)]
    with pytest.raises(SpecError) as raised:
        parse_yaml("\n".join(lines))
    assert str(raised.value) == "line 33, column 12: nested more than 32 deep"


def test_a_key_given_twice_and_a_tag_are_told_together_and_the_first_value_counts() -> None:
    text = "rules:\n- {user: a, user: b, current: != 4}\n- {x y: 1, x y: 2}\n"
    assert parse_yaml(text) == (
        {"rules": [{"user": "a", "current": "4"}, {"x y": 1}]},
        [
            Problem("rules[0].user", "the key is given twice, again at line 2, column 13"),
            Problem(
                "rules[0].current",
                'the tag "!=" is not allowed; put a text that starts with ! in quotes',
            ),
            Problem('rules[1]["x y"]', "the key is given twice, again at line 3, column 12"),
        ],
    )


@pytest.mark.parametrize(
    "text", ["8", "0010", "1.10", "1e3", "0x1F", "+5", "-1", "1.5", "abc", "true", '"8"']
)
def test_a_scalar_can_be_had_as_it_was_written(text: str) -> None:
    assert as_written(parse_yaml(text)[0]) == text.strip('"')


def test_nothing_is_written_as_nothing() -> None:
    assert as_written(parse_yaml("~")[0]) == ""
