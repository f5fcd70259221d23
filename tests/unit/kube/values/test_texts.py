"""What names may look like."""

import pytest

from kube.values.texts import (
    FREE_TEXT,
    LABEL_VALUE,
    NAMESPACE,
    OBJECT_NAME,
    TextRule,
    parse_number,
)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (NAMESPACE, "team-a"),
        (NAMESPACE, "a" * 63),
        (OBJECT_NAME, "bert-0.worker"),
        (OBJECT_NAME, "0.0.1.0"),
        (LABEL_VALUE, "NVIDIA-A100_80GB.x"),
        (FREE_TEXT, "alice~bert/default"),
        (FREE_TEXT, "Zoë of the\u00a0lab"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_good_names_have_no_problem(rule: TextRule, text: str) -> None:
    assert rule.problem(text) is None


@pytest.mark.parametrize(
    ("rule", "text", "problem"),
    [
        (NAMESPACE, "a.b", 'must be a DNS label, not "a.b"'),
        (NAMESPACE, "a" * 64, "must be at most 63 characters, not 64"),
        (OBJECT_NAME, "Bert", 'must be a DNS name, not "Bert"'),
        (OBJECT_NAME, "bert-", 'must be a DNS name, not "bert-"'),
        (OBJECT_NAME, "a" * 300, "must be at most 253 characters, not 300"),
        (LABEL_VALUE, "-x", 'must be a label value, not "-x"'),
        (LABEL_VALUE, "x\n", 'must be a label value, not "x\\n"'),
        (FREE_TEXT, "a\0b", 'must be text without control characters, not "a\\x00b"'),
        (FREE_TEXT, "\ud800", 'must be text without control characters, not "\\ud800"'),
        (FREE_TEXT, "x" * 2_000, "must be at most 1024 characters, not 2000"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_bad_names_are_explained(rule: TextRule, text: str, problem: str) -> None:
    assert rule.problem(text) == problem


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("150000", 150_000), ("", None), ("-1", None), ("1.0", None), ("1" * 10, None)],
)
def test_only_plain_decimal_numbers_are_read(text: str, number: int | None) -> None:
    assert parse_number(text) == number
