"""Charges that wait at the same time share one transaction.

A transaction costs a write to the disk, and until that is done it holds the rows of its users and
groups: one charge at a time, a user who submits a thousand gangs would get as many as the disk
has writes. So whatever waits when a connection becomes free goes in one statement, whose answer
holds one answer for each. A charge that finds a free connection waits for nobody.

A batch that fails is tried again one by one if Postgres said no to its content; so a charge that
can never be made costs no other.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Asked, Answered]):
    asked: Asked
    answer: "asyncio.Future[Answered]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Batches(Generic[Asked, Answered]):
    """Runs `work` on batches of what is asked, with at most so many batches under way."""

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Awaitable[Sequence[Answered]]],
        *,
        lanes: int,
        batch_size: int,
    ) -> None:
        self._work = work
        self._lanes = lanes
        self._batch_size = batch_size
        self._waiting: deque[_Waiting[Asked, Answered]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, asked: Asked, *, timeout_seconds: float) -> Answered:
        """Return the answer, or raise what the work raised; TimeoutError if it takes too long.

        After a timeout the work may still be done, unless it had not begun.
        """
        waiting: _Waiting[Asked, Answered] = _Waiting(asked)
        self._waiting.append(waiting)
        if len(self._running) < self._lanes:
            self._running.add(asyncio.create_task(self._run()))
        # Not wait_for: before Python 3.12 it can swallow a cancellation.
        async with asyncio.timeout(timeout_seconds):
            return await waiting.answer

    async def aclose(self) -> None:
        """Wait for what is under way, and give up what has not begun."""
        _fail(self._waiting, ConnectionAbortedError("charging ends"))
        self._waiting.clear()
        await asyncio.gather(*self._running)

    async def _run(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # In the same step in which nothing was left: whoever asks next starts another.
            task = asyncio.current_task()
            assert task is not None
            self._running.discard(task)

    def _next(self) -> list[_Waiting[Asked, Answered]]:
        batch: list[_Waiting[Asked, Answered]] = []
        while self._waiting and len(batch) < self._batch_size:
            waiting = self._waiting.popleft()
            if not waiting.answer.done():  # else its caller has given up
                batch.append(waiting)
        return batch

    async def _answer(self, batch: Sequence[_Waiting[Asked, Answered]]) -> None:
        try:
            answers = await self._work([waiting.asked for waiting in batch])
        except ValueError as error:
            if len(batch) == 1:
                return _fail(batch, error)
            for waiting in batch:
                await self._answer([waiting])
        except Exception as error:
            # Whoever asked must hear it, or would wait for nothing.
            _fail(batch, error)
        except asyncio.CancelledError:
            _fail(batch, ConnectionAbortedError("charging was cancelled"))
            raise
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)


def _fail(batch: Iterable[_Waiting[Asked, Answered]], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
