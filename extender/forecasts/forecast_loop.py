"""Keeps the forecasts of the leader current: learns from history, predicts for waiting gangs."""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from prometheus_client import CollectorRegistry

from extender.cluster.reader import ClusterReader
from extender.forecasts.outlooks import OutlookWriter
from extender.forecasts.queue_copy import QueueCopier
from extender.forecasts.run_forecasts import RunForecasts
from extender.forecasts.start_forecasts import StartForecasts
from extender.history.run_recorder import RunRecorder
from policy.policy import Policy
from service.clock import Clock
from state.history.runs import RunHistory
from state.ledger.ledger import LeaderTerm

_LEAST_PAUSE_SECONDS: Final = 5.0
_MOST_PAUSE_SECONDS: Final = 60.0
_PAUSE_FACTOR: Final = 20.0
"""The pause after a round, in its duration: forecasts take at most a twentieth of the time."""
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
        cluster: ClusterReader,
        policy: Callable[[], Policy],
        term: Callable[[], LeaderTerm],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        self._recorder = recorder
        self._clock = clock
        self.run_times = RunForecasts(history, queues=lambda: policy().queues, clock=clock)
        """The run times of gangs, for the planner."""
        recorder.predictions = self.run_times
        self.copier = QueueCopier(cluster, self.run_times, policy=policy)
        """Copies the queue for each forecast."""
        self.starts = StartForecasts(
            self.copier,
            self.run_times,
            rules=lambda: policy().queues.expected_start,
            clock=clock,
            registry=registry,
        )
        """When waiting gangs are expected to start."""
        self.outlooks = OutlookWriter(
            self.starts,
            self.run_times,
            cluster=cluster,
            policy=policy,
            term=term,
            clock=clock,
        )
        """When gangs that are submitted now would start."""

    async def run(self) -> NoReturn:
        """Learn from the history, then predict, until cancelled."""
        self.starts.learn_past(await self.run_times.load())
        while True:
            began = self._clock.monotonic()
            await self.predict()
            spent = self._clock.monotonic() - began
            pause = max(_LEAST_PAUSE_SECONDS, _PAUSE_FACTOR * spent)
            await asyncio.sleep(min(pause, _MOST_PAUSE_SECONDS))

    async def predict(self) -> None:
        """Predict for gangs that have no prediction, and have it recorded."""
        self.run_times.retain({run.name for run in self._recorder.book})
        now, stamp = self._clock.now().timestamp(), self._recorder.stamp()
        for number, followed in enumerate(list(self.run_times.followed)):
            if now - followed.asked >= _SETTLED_SECONDS:
                self.run_times.predict(followed, stamp=stamp)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        await self.starts.update(stamp=stamp)
        await self.outlooks.write()
        predicted = self.run_times.take_predicted()
        self._recorder.book.mark([run for run in self._recorder.book if run.name in predicted])
