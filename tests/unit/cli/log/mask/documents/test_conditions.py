"""CEL conditions that hold for pseudonyms, and those that are refused."""

import pytest

from cli.log.mask.documents.conditions import formula, when
from cli.log.mask.fields import LeftOutError, Pass
from cli.log.mask.names import Collected, Kind, Pseudonyms


def _pass() -> Pass:
    collected = Collected()
    for kind, names in {
        Kind.USER: ("alice", "bob"),
        Kind.CLASS: ("prod", "test"),
        Kind.NAMESPACE: ("lab",),
    }.items():
        for name in names:
            collected.of(kind, name)
    known: Pseudonyms = collected.assign()
    return Pass(names=known)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("leafCells <= 8", "leafCells <= 8"),
        ("class == 'prod' && leafCells <= 8", "class == 'class-0001' && leafCells <= 8"),
        ('"alice" != user', "'user-0001' != user"),
        (
            "user in ['alice', 'bob'] || !(namespace=='lab')",
            "user in [ 'user-0001' , 'user-0002' ] || ! ( namespace == 'namespace-0001' )",
        ),
        ("priority > 0 ? leafCells < 4 : true", "priority > 0 ? leafCells < 4 : true"),
    ],
)
def test_names_that_are_compared_are_masked(text: str, masked: str) -> None:
    assert when(text, _pass(), "") == masked


@pytest.mark.parametrize(
    "text",
    [
        "user.startsWith('al')",
        "user.matches('^a')",
        "size(user) > 3",
        "user + 'x' == 'alicex'",
        "user == group",
        "'alice' == 'alice'",
        "'alice' in ['alice']",
        "class == 'a\\'b'",
        "vc > 'a'",
        "user // a comment about acme",
        "acme == 1",
    ],
)
def test_a_condition_that_looks_into_names_is_left_out(text: str) -> None:
    with pytest.raises(LeftOutError):
        when(text, _pass(), "")


def test_a_formula_names_nothing() -> None:
    text = "worth.class * class + (fairShare > 0.5 ? worth.fairShare : 0.0)"
    assert formula(text, _pass(), "") == text
    for other in ("class == 'acme' ? 1.0 : 0.0", "acme * 2.0", "class // acme"):
        with pytest.raises(LeftOutError):
            formula(other, _pass(), "")
