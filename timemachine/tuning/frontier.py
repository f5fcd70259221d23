"""Candidates that no other one beats in everything: what is left to choose by taste."""

from collections.abc import Sequence

Scores = Sequence[float]
"""One number for each objective; less is better."""


def beats(one: Scores, other: Scores) -> bool:
    """Tell whether one is nowhere worse than the other, and somewhere better."""
    pairs = list(zip(one, other, strict=True))
    return all(mine <= its for mine, its in pairs) and any(mine < its for mine, its in pairs)


def frontier(scores: Sequence[Scores]) -> list[int]:
    """Return the places of those that no other one beats, by their first score."""
    found = [
        place
        for place, mine in enumerate(scores)
        if not any(beats(other, mine) for other in scores)
    ]
    return sorted(found, key=lambda place: (tuple(scores[place]), place))


def layers(scores: Sequence[Scores]) -> list[int]:
    """Return all places: the frontier, then the frontier of the others, and so on."""
    left = list(range(len(scores)))
    order: list[int] = []
    while left:
        front = [left[place] for place in frontier([scores[place] for place in left])]
        order += front
        left = [place for place in left if place not in front]
    return order
