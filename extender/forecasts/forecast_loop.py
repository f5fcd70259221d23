"""Keeps the forecasts of the leader current: learns from history, predicts for waiting gangs."""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from extender.forecasts.run_forecasts import RunForecasts
from extender.history.run_recorder import RunRecorder
from extender.runs.model import Run
from policy.queues.queues import Queues
from service.clock import Clock
from state.history.runs import RunHistory

_EVERY_SECONDS: Final = 30.0
_FIRST_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 5.0
"""By then the pods of a gang exist, so that its size is known."""
_AT_ONCE: Final = 50


class ForecastLoop:
    """Predicts for every gang that waits. Runs in the leader, in short pieces."""

    def __init__(
        self,
        recorder: RunRecorder,
        history: RunHistory | None,
        *,
        queues: Callable[[], Queues],
        clock: Clock,
    ) -> None:
        self._recorder = recorder
        self._clock = clock
        self.run_times = RunForecasts(history, queues=queues, clock=clock)
        """The run times of gangs, for the planner."""
        recorder.predictions = self.run_times

    async def run(self) -> NoReturn:
        """Learn from the history, then predict, until cancelled."""
        await self.run_times.load()
        await asyncio.sleep(_FIRST_SECONDS)
        while True:
            await self.predict()
            await asyncio.sleep(_EVERY_SECONDS)

    async def predict(self) -> None:
        """Predict for gangs that wait and have no prediction, and have it recorded."""
        runs: dict[str, Run] = {run.name: run for run in self._recorder.book}
        self.run_times.retain(runs)
        now = self._clock.now()
        stamp = self._recorder.stamp()
        for number, followed in enumerate(list(self.run_times.followed)):
            run = runs.get(followed.run)
            is_settled = now.timestamp() - followed.asked >= _SETTLED_SECONDS
            if run is not None and is_settled and self.run_times.predict(followed, stamp=stamp):
                self._recorder.book.mark([run])
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
