"""Batches of requests that share one transaction.

A transaction costs one write to disk, and it locks the rows of its users and groups until that
write is done. With one transaction for each charge, a user's charges would be limited to the write
rate of the disk. So all requests that wait when a connection becomes free are sent in one
statement, which returns one answer for each. A request that finds a free connection does not wait.

If Postgres refuses the content of a batch, its requests are tried one by one, so that one bad
request does not fail the others.
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
    """Runs `work` on batches of requests, at most `lanes` batches at a time."""

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
        """Return the answer, or raise the error of `work`; TimeoutError at the deadline.

        A batch that had started by the deadline continues, so the request may still take effect.
        """
        waiting: _Waiting[Asked, Answered] = _Waiting(asked)
        self._waiting.append(waiting)
        if len(self._running) < self._lanes:
            self._running.add(asyncio.create_task(self._run()))
        # Not wait_for: before Python 3.12 it can swallow a cancellation.
        async with asyncio.timeout(timeout_seconds):
            return await waiting.answer

    async def aclose(self) -> None:
        """Wait for batches that have started; fail the requests that have not."""
        _fail(self._waiting, ConnectionAbortedError("the ledger is being closed"))
        self._waiting.clear()
        await asyncio.gather(*self._running)

    async def _run(self) -> None:
        try:
            while batch := self._next():
                await self._answer(batch)
        finally:
            # No await since the queue was empty: the next `ask` starts a new task.
            task = asyncio.current_task()
            assert task is not None
            self._running.discard(task)

    def _next(self) -> list[_Waiting[Asked, Answered]]:
        batch: list[_Waiting[Asked, Answered]] = []
        while self._waiting and len(batch) < self._batch_size:
            waiting = self._waiting.popleft()
            if not waiting.answer.done():  # otherwise its caller has timed out
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
            # The callers wait for an answer until their deadline: tell them now.
            _fail(batch, error)
        except asyncio.CancelledError:
            _fail(batch, ConnectionAbortedError("the charge was cancelled"))
            raise
        else:
            for waiting, answer in zip(batch, answers, strict=True):
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)


def _fail(batch: Iterable[_Waiting[Asked, Answered]], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
