"""Refusals that are given again."""

from extender.verbs.repeated_refusals import RepeatedRefusals


def test_an_answer_is_given_again_until_the_cluster_changes() -> None:
    refusals = RepeatedRefusals()
    refusals.put(b"question", b"no", version=7)
    assert refusals.repeat(b"question", version=7) == b"no"
    assert refusals.repeat(b"another", version=7) is None
    assert refusals.repeat(b"question", version=8) is None
