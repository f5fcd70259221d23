"""Searches take turns, and leave half of the time to others."""

import asyncio

from extender.simulate.search_turns import SearchTurns


async def test_a_search_waits_as_long_as_the_one_before_took() -> None:
    turns, clock, spans = SearchTurns(), asyncio.get_running_loop().time, list[float]()

    async def search() -> None:
        async with turns.take():
            began = clock()
            await asyncio.sleep(0.02)
            spans.extend((began, clock()))

    await asyncio.gather(search(), search(), search())
    for end, following in zip(spans[1::2], spans[2::2], strict=False):
        assert following - end >= 0.019
    began = clock()
    await asyncio.sleep(0.05)
    async with turns.take():
        assert clock() - began < 1  # after a rest it begins at once


async def test_a_search_that_fails_gives_up_its_turn() -> None:
    turns = SearchTurns()
    try:
        async with turns.take():
            raise ValueError
    except ValueError:
        pass
    async with asyncio.timeout(1), turns.take():
        pass
