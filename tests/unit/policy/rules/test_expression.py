"""`when`: what is refused beforehand, and what has no answer for one submission."""

import pytest

from policy.rules.expression import VARIABLES, EvaluationError, build_inputs, parse_expression

INPUTS = build_inputs(
    {
        **VARIABLES,
        "user": "alice",
        "groups": ["students", "vision"],
        "current": 8,
        "occupied": 12,
        "leafType": "A100",
        "labels": {"app.kubernetes.io/name": "bert", "stage": "matches('x')"},
    }
)


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("'students' in groups && leafType == 'A100'", True),
        ("class == requestedClass", True),
        ("current > 8 || occupied - current == 4", True),
        ("user.startsWith('al') && !user.endsWith('x')", True),
        ("groups.exists(g, g == 'vision') && groups.all(g, size(g) > 5)", True),
        ("labels.exists(key, labels[key] == 'bert')", True),
        ("labels['app.kubernetes.io/name'] in ['bert', 'gpt']", True),
        ("has(labels.team) && labels.team == 'x'", False),
        ("user.matches('^a.*e$')", True),
        ("matches(user, 'bob')", False),
        ("labels.stage == \"matches('x')\"", True),
        ("true // .map(x, y)", True),
        ("namespace == 'namespace' && labels.stage != \"namespace\"", True),
        ("has(labels.namespace) || has(labels.matches)", False),
    ],
)
def test_an_expression_answers(source: str, answer: bool) -> None:
    assert parse_expression(source).holds(INPUTS) is answer


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (
            "user ==",
            "is not a valid CEL expression: unexpected end at line 1, column 8",
        ),
        ("(" * 200, "is not a valid CEL expression: nested too deeply at line 1, column 97"),
        (
            "foo == 1",
            'unknown variable "foo"; known variables are user, groups, vc, class, requestedClass, '
            "current, occupied, occupiedHigh, occupiedLow, leafType, gangSize, namespace, labels",
        ),
        (
            "now() > 1",
            'unknown function "now"; known functions are contains, double, dyn, endsWith, int, '
            "matches, size, startsWith, string, type, uint",
        ),
        (
            "nameSpace == 'a'",
            'unknown variable "nameSpace"; known variables are user, groups, vc, class, '
            "requestedClass, current, occupied, occupiedHigh, occupiedLow, leafType, gangSize, "
            "namespace, labels",
        ),
        (
            "user.re2find('a')",
            'unknown function "re2find"; known functions are contains, double, dyn, endsWith, int, '
            "matches, size, startsWith, string, type, uint",
        ),
        (
            "namespace == 'a' && user.matches('b') ==",
            "is not a valid CEL expression: unexpected end at line 1, column 41",
        ),
        ("current", "can never be true or false: its result is 1 instead of true or false"),
        (
            "occupied > '4'",
            "can never be true or false: values of different types are combined, "
            "such as a number and a string",
        ),
        (
            "user.contains(1)",
            "can never be true or false: a value cannot be converted, "
            "or a function does not accept such values",
        ),
        (
            "false && user.matches('(a')",
            'the pattern "(a" of matches is not a valid regular expression: missing ) in "(a"',
        ),
        (
            "false && matches(user, '(a')",
            'the pattern "(a" of matches is not a valid regular expression: missing ) in "(a"',
        ),
        ("groups.map(g, g) == []", "map is not available; use all, exists or exists_one"),
        ("groups.filter(g, true) == []", "filter is not available; use all, exists or exists_one"),
        (
            "groups.exists(a, groups.all(b, a == b))",
            "all inside another all, exists or exists_one is not available",
        ),
        ("a" * 2049, "is 2049 characters long; at most 2048 are allowed"),
        (True, "must be a CEL expression in quotes, not true"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_can_never_answer_is_refused_beforehand(source: object, problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_expression(source)
    assert str(raised.value) == problem


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("labels.team == 'x'", 'there is no key "team"'),
        ("groups[7] == 'x'", "a list has no such element"),
        ("1 / (current - 8) == 1", "division by zero"),
        ("current + 9223372036854775800 > 1", "a number is too large"),
        (
            "int(user) > 1",
            "a value cannot be converted, or a function does not accept such values",
        ),
        ("labels.stage", "its result is \"matches('x')\" instead of true or false"),
        (
            "labels.stage > 1",
            "values of different types are combined, such as a number and a string",
        ),
        ("user.matches(labels.stage + '(')", "its result is null instead of true or false"),
    ],
)
def test_an_expression_without_an_answer_says_why(source: str, reason: str) -> None:
    expression = parse_expression(source)
    with pytest.raises(EvaluationError) as raised:
        expression.holds(INPUTS)
    assert str(raised.value) == reason


def test_a_failing_expression_logs_nothing(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EvaluationError):
        parse_expression("user.matches(labels.stage + '(')").holds(INPUTS)
    assert (caplog.text, capfd.readouterr()) == ("", ("", ""))


@pytest.mark.parametrize(
    ("source", "needs_usage", "depends_on_class"),
    [
        ("user == 'occupied'", False, False),
        ("occupied > 4", True, False),
        ("occupiedHigh > 4", True, True),
        ("occupiedLow > 4", True, True),
        ("class == 'prod'", False, True),
    ],
)
def test_an_expression_knows_what_it_depends_on(
    source: str, needs_usage: bool, depends_on_class: bool
) -> None:
    expression = parse_expression(source)
    assert (expression.needs_usage, expression.depends_on_class) == (needs_usage, depends_on_class)


def test_a_submission_with_a_number_too_large_for_expressions_says_so() -> None:
    with pytest.raises(EvaluationError) as raised:
        build_inputs({**VARIABLES, "current": 1 << 2000})
    assert str(raised.value) == "the submission has a number that is too large"
