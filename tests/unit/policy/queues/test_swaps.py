"""The gang that a user names for a swap: a name, and nothing that changes a request."""

import pytest

from policy.queues.swaps import parse_swap


def test_a_gang_is_named_with_or_without_its_namespace() -> None:
    assert parse_swap("Bert_2.a", namespace="lab") == ("lab", "Bert_2.a")
    assert parse_swap("other/bert", namespace="lab") == ("other", "bert")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/a",
        "a/",
        "a/b/c",
        "../a",
        "a/..",
        "a?watch=1",
        "a,b",
        "a%2f..",
        "a b",
        "ä",
        "a" * 513,
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """The webhook reads the gang with its own rights."""
    with pytest.raises(ValueError, match="must be <gang> or <namespace>/<gang>"):
        parse_swap(text, namespace="lab")
