"""Candidates that no other one beats in everything."""

from timemachine.tuning.frontier import beats, frontier, layers

_SCORES = [(3.0, 3.0), (1.0, 5.0), (5.0, 1.0), (2.0, 2.0), (6.0, 6.0), (2.0, 2.0)]


def test_one_beats_another_that_is_nowhere_better_and_somewhere_worse() -> None:
    assert beats((1.0, 1.0), (1.0, 2.0))
    assert not beats((1.0, 2.0), (1.0, 2.0))
    assert not beats((1.0, 3.0), (2.0, 2.0))


def test_the_frontier_holds_those_that_no_other_beats() -> None:
    assert frontier(_SCORES) == [1, 3, 5, 2]
    assert frontier([]) == []


def test_layers_hold_all_the_frontier_first() -> None:
    assert layers(_SCORES) == [1, 3, 5, 2, 0, 4]
