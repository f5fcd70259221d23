"""A taste of the fuzzer; `python -m tests.fuzz.webhook` is the meal."""

from tests.fuzz.webhook import fuzz


async def test_hostile_reviews_are_answered() -> None:
    counts = await fuzz(400, seed=2)
    assert sum(counts.values()) == 400
    assert min(counts["allowed"], counts["refused"], counts["400"]) > 0
