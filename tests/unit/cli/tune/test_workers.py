"""The processes of a search."""

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import Any

import pytest

from cli.tune import workers


def _play_for_long(*_: Any) -> None:
    time.sleep(60)


def _begin(*_: Any) -> None:
    """Do without arrivals."""


async def test_what_is_unfinished_at_the_end_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(workers, "evaluate", _play_for_long)
    monkeypatch.setattr(workers, "begin", _begin)
    task: Any = SimpleNamespace(candidate=SimpleNamespace(text=""), stretch=None)
    given: Any = None
    with workers.Workers(given, jobs=1) as players:
        futures = [players.play(task), players.play(task)]
        await asyncio.sleep(0.3)
    await asyncio.sleep(0.3)
    assert all(future.cancelled() for future in futures)
    del futures, players
    gc.collect()
    assert "never retrieved" not in caplog.text
