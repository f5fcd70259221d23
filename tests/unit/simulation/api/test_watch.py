"""Watch streams, where the contract suite cannot make a real API server forget or hurry."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from simulation.api import watch
from simulation.api.watch import Watch, parse_options
from simulation.objects.fields import Object
from simulation.objects.resources import CONFIG_MAPS
from simulation.objects.store import Store
from tests.support.kube.stored_objects import store_config_map


async def test_watch_from_a_forgotten_version_is_an_error_event() -> None:
    store = Store(history=2)
    for number in range(5):
        store_config_map(store, f"a{number}")
    (event,) = await _events(store, resourceVersion=str(store.revision - 3))
    assert event["type"] == "ERROR"
    assert (event["object"]["kind"], event["object"]["code"]) == ("Status", 410)


async def test_bookmarks_come_although_other_kinds_change_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.0)
    store = Store()
    store_config_map(store, "a")
    query = {"resourceVersion": str(store.revision), "allowWatchBookmarks": "true"}
    (bookmark,) = await _events(store, count=1, **query)
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["resourceVersion"] == str(store.revision)


async def test_change_while_an_event_is_being_sent_is_not_lost() -> None:
    store = Store()
    begin = store.revision
    for name in ("a", "b"):
        store_config_map(store, name)
    seen: list[str] = []
    async with aclosing(_stream(store, resourceVersion=str(begin))) as events:
        async for event in events:
            seen.append(event["object"]["metadata"]["name"])
            if seen == ["a"]:
                store_config_map(store, "c")
            if len(seen) == 3:
                break
    assert seen == ["a", "b", "c"]


async def test_closed_watch_ends() -> None:
    store = Store()
    options = parse_options({"timeoutSeconds": "60"})
    stream = Watch(store, CONFIG_MAPS, selects=lambda _: True, options=options)
    stream.close()
    assert [event async for event in stream.events()] == []


async def _events(store: Store, *, count: int = 10, **query: str) -> list[Object]:
    seen: list[Object] = []
    async with aclosing(_stream(store, **query)) as events:
        async for event in events:
            seen.append(event)
            if len(seen) == count:
                break
    return seen


def _stream(store: Store, **query: str) -> AsyncGenerator[Object, None]:
    options = parse_options({"timeoutSeconds": "1", **query})
    return Watch(store, CONFIG_MAPS, selects=lambda _: True, options=options).events()
