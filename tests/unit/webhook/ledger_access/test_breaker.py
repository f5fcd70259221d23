"""A ledger that is away is looked for beside the reviews, never by one of them."""

import asyncio

from policy.errors import BackendError
from webhook.ledger_access.breaker import Breaker


class _Ledger:
    def __init__(self) -> None:
        self.asked = 0
        self.is_back = asyncio.Event()

    async def fail_until_back(self) -> None:
        self.asked += 1
        if not self.is_back.is_set():
            raise BackendError("away")

    async def hang(self) -> None:
        self.asked += 1
        await self.is_back.wait()


async def test_it_opens_at_the_first_failure_and_closes_when_the_ledger_answers() -> None:
    ledger = _Ledger()
    breaker = Breaker(ledger.fail_until_back)
    seen = [breaker.is_closed]
    breaker.note_failure()
    await breaker.attempt()
    seen.append(breaker.is_closed)
    ledger.is_back.set()
    await breaker.attempt()
    assert [*seen, breaker.is_closed] == [True, False, True]


async def test_an_answer_that_comes_too_late_is_none() -> None:
    breaker = Breaker(_Ledger().hang, patience_seconds=0)
    breaker.note_failure()
    await breaker.attempt()
    assert not breaker.is_closed


async def test_the_ledger_is_not_probed_while_it_answers() -> None:
    ledger = _Ledger()
    breaker = Breaker(ledger.fail_until_back, pause_seconds=0)
    watching = asyncio.create_task(breaker.run())
    await asyncio.sleep(0)
    assert ledger.asked == 0
    breaker.note_failure()
    ledger.is_back.set()
    async with asyncio.timeout(10):
        while not breaker.is_closed:
            await asyncio.sleep(0)
    assert ledger.asked == 1
    watching.cancel()
    await asyncio.wait([watching])
