"""Predictions for waiting gangs, recorded with their runs, exactly once over take-overs."""

import pytest
from prometheus_client import CollectorRegistry

from extender.forecasts.forecast_loop import ForecastLoop
from policy.policy import build
from service.clock import Clock
from tests.support.extender.run_world import RunReplica, RunWorld, a_bound, a_finished, a_pair
from tests.support.state.charges import TERM


class _Predicting:
    """A replica that predicts."""

    def __init__(self, world: RunWorld, replica: RunReplica) -> None:
        self.replica = replica
        clock = Clock(monotonic=lambda: 0.0, now=lambda: replica.now)
        self.loop = ForecastLoop(
            replica.recorder,
            world.history,
            cluster=replica.shell.cluster,
            policy=lambda: build({}),
            term=lambda: TERM,
            clock=clock,
            registry=CollectorRegistry(),
        )
        self.forecasts = self.loop.run_times

    async def run_gang(self, *, begin: float, seconds: float) -> None:
        """Let a gang run from its beginning to its end."""
        pods = a_pair(created=begin, suffix=f"-{begin:.0f}")
        bound = [a_bound(pod, node, at=begin) for pod, node in zip(pods, "xy", strict=True)]
        self.replica.at(begin).see(*bound)
        await self.replica.record()
        end = begin + seconds
        self.replica.at(end).see(*(a_finished(pod, at=end) for pod in bound))
        await self.replica.record()


async def test_a_waiting_gang_is_predicted_and_the_first_leader_counts() -> None:
    world = RunWorld()
    leader = _Predicting(world, world.leader)
    await leader.forecasts.load()
    for number in range(6):
        await leader.run_gang(begin=10_000.0 * number, seconds=600.0)
    pods = a_pair(created=100_000)
    leader.replica.at(100_001).see(*pods)
    await leader.replica.record()
    await leader.loop.predict()  # its pods may not all exist yet
    await leader.replica.record()
    assert (await world.runs())[-1].predictions == {}
    leader.replica.at(100_010)
    await leader.loop.predict()
    await leader.replica.record()
    first = (await world.runs())[-1].predictions["runTime"]
    assert first["median"] == pytest.approx(600, rel=0.05)
    assert first["runs"] == 6

    other = _Predicting(world, world.replica(epoch=2))
    other.replica.at(100_020).see(*pods)
    other.replica.lead()
    assert len(await other.forecasts.load()) == 6
    await other.replica.record()
    await other.loop.predict()
    await other.replica.record()
    bound = [a_bound(pod, node, at=100_030) for pod, node in zip(pods, "xy", strict=True)]
    other.replica.at(100_030).see(*bound)
    await other.replica.record()
    other.replica.at(101_000).see(*(a_finished(pod, at=101_000) for pod in bound))
    await other.replica.record()
    run = (await world.runs())[-1]
    assert run.outcome == "succeeded"
    assert run.predictions["runTime"] == first
    assert len(await world.runs()) == 7
