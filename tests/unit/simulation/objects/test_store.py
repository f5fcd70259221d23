"""The store: one revision for all writes, and a history that ends somewhere."""

import asyncio

import pytest

from simulation.objects.fields import Object, clone, key_of, version_of
from simulation.objects.resources import CONFIG_MAPS
from simulation.objects.status import ApiError
from simulation.objects.store import Store
from tests.support.kube.stored_objects import store_config_map


def test_every_write_has_its_own_revision() -> None:
    store = Store()
    first = store.revision
    for name in ("a", "b"):
        store_config_map(store, name)
    store.remove(CONFIG_MAPS, ("ns", "a"))
    revisions = [change.revision for change in store.changes(since=first)]
    assert revisions == [first + 1, first + 2, first + 3]


def test_update_of_an_old_version_changes_nothing() -> None:
    store = Store()
    old = store_config_map(store, "a")
    store.update(CONFIG_MAPS, _with_data(old, "first"), expected=version_of(old))
    before = store.revision
    with pytest.raises(ApiError, match="has been modified"):
        store.update(CONFIG_MAPS, _with_data(old, "second"), expected=version_of(old))
    assert store.revision == before
    assert store.get(CONFIG_MAPS, ("ns", "a"))["data"] == {"by": "first"}


def test_history_forgets_the_oldest_changes() -> None:
    store = Store(history=3)
    for number in range(5):
        store_config_map(store, f"a{number}")
    latest = store.revision
    assert len(store.changes(since=latest - 3)) == 3
    with pytest.raises(ApiError, match="too old resource version") as caught:
        store.changes(since=latest - 4)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_snapshot_undoes_later_changes() -> None:
    store = Store()
    for name in ("a", "b"):
        store_config_map(store, name)
    then, expected = store.revision, store.list(CONFIG_MAPS)
    changed = store.list(CONFIG_MAPS)[0]
    store.update(CONFIG_MAPS, _with_data(changed, "new"), expected=version_of(changed))
    store.remove(CONFIG_MAPS, ("ns", "b"))
    store_config_map(store, "c")
    assert store.snapshot(CONFIG_MAPS, revision=then) == expected
    assert [key_of(obj)[1] for obj in store.list(CONFIG_MAPS)] == ["a", "c"]


async def test_waiting_ends_with_the_next_write() -> None:
    store = Store()
    waiter = asyncio.ensure_future(store.wait_for_change(store.revision))
    await asyncio.sleep(0)
    assert not waiter.done()
    store_config_map(store, "a")
    await waiter


async def test_waiting_for_what_has_happened_already_does_not_wait() -> None:
    store = Store()
    before = store.revision
    store_config_map(store, "a")
    await store.wait_for_change(before)


def _with_data(obj: Object, by: str) -> Object:
    return {**clone(obj), "data": {"by": by}}
