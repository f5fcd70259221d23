"""Processes that play evaluations, as many as there are cores, and end with the search."""

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Protocol, Self

from cli.tune.evaluate import Given, begin, evaluate
from cli.tune.kept import Evaluation
from timemachine.tuning.screening import Task


class Players(Protocol):
    """Plays evaluations, several at once."""

    jobs: int

    def play(self, task: Task) -> "asyncio.Future[Evaluation]":
        """Begin an evaluation."""


class Workers:
    """Implements `Players` with processes."""

    def __init__(self, given: Given, *, jobs: int) -> None:
        self.jobs = jobs
        self._begun: list[asyncio.Future[Evaluation]] = []
        # Forked: each process has the arrivals and the world without a copy being sent to it.
        self._pool = ProcessPoolExecutor(
            jobs,
            mp_context=multiprocessing.get_context("fork"),
            initializer=begin,
            initargs=(given,),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all processes, whatever they do; of what they leave unfinished nothing is told."""
        for future in self._begun:
            if not future.cancel() and not future.cancelled():
                future.exception()
        self._pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()

    def play(self, task: Task) -> "asyncio.Future[Evaluation]":
        """Begin an evaluation, as soon as a process is free."""
        future = asyncio.wrap_future(self._pool.submit(evaluate, task.candidate.text, task.stretch))
        self._begun.append(future)
        return future
