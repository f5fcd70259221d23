"""Keeps the forecasts of the leader current: learns from history, predicts for waiting gangs."""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from extender.forecasts.run_forecasts import RunForecasts
from extender.runs.model import Run
from extender.runs.run_book import RunBook
from service.clock import Clock

_EVERY_SECONDS: Final = 30.0
_FIRST_SECONDS: Final = 2.0
_SETTLED_SECONDS: Final = 5.0
"""By then the pods of a gang exist, so that its size is known."""
_AT_ONCE: Final = 50


class ForecastLoop:
    """Predicts for every gang that waits. Runs in the leader, in short pieces."""

    def __init__(
        self,
        forecasts: RunForecasts,
        *,
        runs: RunBook,
        stamp: Callable[[], str],
        clock: Clock,
    ) -> None:
        """`stamp` marks what is predicted now: the leadership term and the time."""
        self._forecasts = forecasts
        self._runs = runs
        self._stamp = stamp
        self._clock = clock

    async def run(self) -> NoReturn:
        """Learn from the history, then predict, until cancelled."""
        await self._forecasts.load()
        await asyncio.sleep(_FIRST_SECONDS)
        while True:
            await self.predict()
            await asyncio.sleep(_EVERY_SECONDS)

    async def predict(self) -> None:
        """Predict for gangs that wait and have no prediction, and have it recorded."""
        runs: dict[str, Run] = {run.name: run for run in self._runs}
        self._forecasts.retain(runs)
        now = self._clock.now()
        stamp = self._stamp()
        for number, followed in enumerate(list(self._forecasts.followed)):
            run = runs.get(followed.run)
            is_settled = now.timestamp() - followed.asked >= _SETTLED_SECONDS
            if run is not None and is_settled and self._forecasts.predict(followed, stamp=stamp):
                self._runs.mark([run])
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
