"""Background tasks that die are noticed; those that are stopped are not."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from service.health import Health
from service.tasks import Supervisor, wait_up_to


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fail() -> None:
    raise ValueError("broken")


async def test_closing_ends_all_tasks_the_youngest_first() -> None:
    ended: list[str] = []

    async def note_end(name: str) -> None:
        try:
            await _for_ever()
        finally:
            ended.append(name)

    health = Health()
    async with Supervisor(health) as supervisor:
        supervisor.start("old", note_end("old"))
        supervisor.start("young", note_end("young"))
        await asyncio.sleep(0)

    assert ended == ["young", "old"]
    assert health.is_ready


async def _return() -> None:
    pass


@pytest.mark.parametrize("work", [_fail, _return], ids=["raises", "returns"])
async def test_a_task_that_ends_by_itself_is_a_fault(
    work: Callable[[], Coroutine[None, None, None]], caplog: pytest.LogCaptureFixture
) -> None:
    health = Health()
    async with Supervisor(health) as supervisor:
        supervisor.start("feed", work())
        await asyncio.sleep(0.01)
        assert not health.is_alive

    assert health.reasons() == ["background task feed died"]
    assert [record.message for record in caplog.records] == ["background task died"]


async def test_a_task_that_fails_while_it_is_stopped_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail_at_the_end() -> None:
        try:
            await _for_ever()
        finally:
            raise ValueError("broken")

    async with Supervisor(Health()) as supervisor:
        supervisor.start("feed", fail_at_the_end())
        await asyncio.sleep(0)

    messages = [record.message for record in caplog.records]
    assert messages == ["background task failed while stopping"]


async def test_waiting_ends_with_the_event_or_the_time() -> None:
    event = asyncio.Event()
    await wait_up_to(0.001, event)
    event.set()
    await wait_up_to(3600, event)


async def test_a_task_that_is_stopped_just_when_there_is_news_ends() -> None:
    news = asyncio.Event()

    async def follow() -> None:
        while True:
            await wait_up_to(3600, news)
            news.clear()

    async with asyncio.timeout(5), Supervisor(Health()) as supervisor:
        supervisor.start("planner", follow())
        await asyncio.sleep(0)
        news.set()
        await asyncio.sleep(0)  # the news is on its way to the task when it is cancelled
