"""Batches: what waits together goes together, and each gets its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from state.ledger.batches import Batches


class _Work:
    """Doubles numbers when it is let; remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_go_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, asked: Sequence[int]) -> list[int]:
        self.batches.append(list(asked))
        await self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        if -1 in asked:
            raise ValueError("-1 can never be")
        return [2 * number for number in asked]


def _ask(batches: Batches[int, int], number: int, seconds: float = 30) -> asyncio.Task[int]:
    return asyncio.create_task(batches.ask(number, timeout_seconds=seconds))


async def test_what_waits_for_a_free_lane_shares_one() -> None:
    work = _Work()
    batches = Batches(work, lanes=2, batch_size=3)
    tasks = [_ask(batches, number) for number in (1, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    tasks += [_ask(batches, number) for number in (3, 4, 5, 6)]
    await asyncio.sleep(0)
    work.may_go_on.set()
    assert await asyncio.gather(*tasks) == [2, 4, 6, 8, 10, 12]
    assert work.batches == [[1, 2], [3, 4, 5], [6]]
    await batches.aclose()


async def test_a_request_right_after_the_last_answer_is_answered() -> None:
    work = _Work()
    work.may_go_on.set()
    batches = Batches(work, lanes=1, batch_size=10)
    answers = [await batches.ask(number, timeout_seconds=5) for number in range(3)]
    assert answers == [0, 2, 4]
    await batches.aclose()


async def test_one_that_can_never_be_costs_no_other() -> None:
    work = _Work()
    work.may_go_on.set()
    batches = Batches(work, lanes=1, batch_size=10)
    answers = await asyncio.gather(
        *(_ask(batches, number) for number in (1, -1, 2)), return_exceptions=True
    )
    assert answers[0] == 2
    assert isinstance(answers[1], ValueError)
    assert answers[2] == 4
    await batches.aclose()


async def test_an_error_reaches_all_who_wait_for_that_batch_and_no_others() -> None:
    work = _Work()
    work.error = OSError("gone")
    work.may_go_on.set()
    batches = Batches(work, lanes=1, batch_size=10)
    with pytest.raises(OSError, match="gone"):
        await _ask(batches, 1)
    work.error = None
    assert await _ask(batches, 2) == 4
    await batches.aclose()


async def test_a_request_past_its_deadline_fails_and_leaves_the_batch() -> None:
    work = _Work()
    batches = Batches(work, lanes=1, batch_size=10)
    first = _ask(batches, 1)
    await asyncio.sleep(0)
    late = _ask(batches, 2, seconds=0.001)
    with pytest.raises(TimeoutError):
        await late
    work.may_go_on.set()
    assert await first == 2
    assert work.batches == [[1]]
    await batches.aclose()


async def test_closing_ends_what_waits() -> None:
    work = _Work()
    batches = Batches(work, lanes=1, batch_size=1)
    tasks = [_ask(batches, 1), _ask(batches, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    work.may_go_on.set()
    await batches.aclose()
    assert await tasks[0] == 2
    with pytest.raises(ConnectionAbortedError):
        await tasks[1]
