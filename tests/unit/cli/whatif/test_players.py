"""Worlds are played in processes of their own."""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.log.progress import Progress
from cli.whatif import players as module
from cli.whatif.players import Players
from policy.errors import InvariantError
from tests.support.timemachine.worlds import a_world, an_arrival, fates_of, starts_of
from timemachine.model import Arrival
from timemachine.play import play

_ARRIVALS: Sequence[Arrival] = [
    an_arrival("one", 8, 8),
    an_arrival("two", 8, 8, at=60.0),
    an_arrival("other", 8, at=60.0, vc="b"),
]


async def test_runs_are_those_of_one_process_in_the_order_of_worlds() -> None:
    worlds = [a_world(), a_world(rules="rules: [{vc: '^b$', then: fail}]")]
    found = await Players(_ARRIVALS, Progress()).play(worlds)
    for run, world in zip(found, worlds, strict=True):
        assert run == play(_ARRIVALS, world)
    assert [fates_of(run)["other"].is_admitted for run in found] == [True, False]


async def test_each_vc_is_played_alone() -> None:
    world = a_world()
    runs = await Players(_ARRIVALS, Progress()).play_alone(world, [*world.topology.vcs])  # type: ignore[union-attr]  # a Cluster document
    assert [sorted(starts_of(run)) for run in runs] == [["one", "two"], ["other"]]


async def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "play", lambda *_, **__: os._exit(7))
    with pytest.raises(InvariantError, match="a process that played ended with 7"):
        await Players(_ARRIVALS, Progress()).play([a_world()])


async def test_no_process_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "play", lambda *_, **__: time.sleep(60))
    playing = asyncio.create_task(Players(_ARRIVALS, Progress()).play([a_world()] * 3))
    while not multiprocessing.active_children():
        await asyncio.sleep(0.01)
    started = [Path(f"/proc/{child.pid}") for child in multiprocessing.active_children()]
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    async with asyncio.timeout(10):
        while any(path.exists() for path in started):
            await asyncio.sleep(0.01)
