"""A live copy of objects, over everything an API server does to its watchers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes_asyncio.client import ApiClient, Configuration

from kube.api.client import MERGE_PATCH, KubeClient, KubeError, Object, connect, open_session
from kube.api.feed import Feed, FeedSource, paused
from policy.errors import SettingsError
from service.clock import Clock
from simulation.cluster import SimulatedCluster

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Copy:
    """A sink that remembers names and values."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.lists = 0

    def replace(self, objects: Sequence[Object]) -> None:
        self.lists += 1
        self.values = {}
        for obj in objects:
            self.upsert(obj)

    def upsert(self, obj: Object) -> None:
        self.values[obj["metadata"]["name"]] = obj["data"]["value"]

    def remove(self, obj: Object) -> None:
        del self.values[obj["metadata"]["name"]]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SimulatedCluster]:
    cluster = SimulatedCluster(nodes=1)
    await cluster.serve()
    cluster.save_kubeconfig(tmp_path / "kubeconfig")
    yield cluster
    await cluster.close()


@pytest.fixture
async def client(cluster: SimulatedCluster, tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with connect(str(tmp_path / "kubeconfig")) as client:
        yield client


@pytest.fixture
async def copy(client: KubeClient) -> AsyncIterator[Copy]:
    """A copy of the ConfigMaps of the default namespace, kept up to date."""
    copy, synced = Copy(), asyncio.Event()
    feed = Feed(
        client, FeedSource(path=CONFIG_MAPS, sink=copy), clock=Clock(), on_synced=synced.set
    )
    task = asyncio.create_task(feed.run())
    await synced.wait()
    yield copy
    task.cancel()
    await asyncio.wait([task])


async def create(client: KubeClient, name: str, value: str) -> None:
    body = {"metadata": {"name": name}, "data": {"value": value}}
    await client.request("POST", CONFIG_MAPS, body=body)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the feed will bring."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_what_appears_changes_and_goes_is_seen(client: KubeClient, copy: Copy) -> None:
    await create(client, "a", "1")
    await until(lambda: copy.values == {"a": "1"})

    body = {"data": {"value": "2"}}
    await client.request("PATCH", f"{CONFIG_MAPS}/a", body=body, content_type=MERGE_PATCH)
    await until(lambda: copy.values == {"a": "2"})

    await client.request("DELETE", f"{CONFIG_MAPS}/a")
    await until(lambda: copy.values == {})
    assert copy.lists == 1


async def test_a_paused_feed_tells_what_happened_when_it_goes_on(
    client: KubeClient, copy: Copy
) -> None:
    held, synced = Copy(), asyncio.Event()
    feed = Feed(
        client, FeedSource(path=CONFIG_MAPS, sink=held), clock=Clock(), on_synced=synced.set
    )
    task = asyncio.create_task(feed.run())
    await synced.wait()
    with paused([feed]):
        await create(client, "a", "1")
        await until(lambda: copy.values == {"a": "1"})
        assert held.values == {}
    await until(lambda: held.values == {"a": "1"})
    task.cancel()
    await asyncio.wait([task])


async def test_who_waits_for_a_version_knows_all_up_to_it(client: KubeClient) -> None:
    copy = Copy()
    feed = Feed(client, FeedSource(path=CONFIG_MAPS, sink=copy), clock=Clock())
    task = asyncio.create_task(feed.run())
    await feed.synced.wait()
    for index in range(5):
        await create(client, f"c{index}", "x")
    last = await client.request("GET", f"{CONFIG_MAPS}/c4")
    await asyncio.wait_for(feed.reach(last["metadata"]["resourceVersion"]), 10)
    assert len(copy.values) == 5
    task.cancel()
    await asyncio.wait([task])


async def test_what_is_there_already_is_listed_in_pages(client: KubeClient) -> None:
    for index in range(1100):
        await create(client, f"c{index:04}", "x")
    copy, synced = Copy(), asyncio.Event()
    task = asyncio.create_task(
        Feed(
            client, FeedSource(path=CONFIG_MAPS, sink=copy), clock=Clock(), on_synced=synced.set
        ).run()
    )
    await synced.wait()

    assert len(copy.values) == 1100
    assert copy.lists == 1
    task.cancel()
    await asyncio.wait([task])


async def test_the_server_may_restart(
    cluster: SimulatedCluster, client: KubeClient, copy: Copy
) -> None:
    await create(client, "before", "1")
    port = int(cluster.url.rsplit(":", 1)[1])
    await cluster.close()
    await asyncio.sleep(0.3)
    await cluster.serve(port=port)

    await create(client, "after", "1")
    await until(lambda: list(copy.values) == ["before", "after"])


async def test_an_object_that_does_not_exist_is_told_from_a_failure(client: KubeClient) -> None:
    with pytest.raises(KubeError) as error:
        await client.request("GET", f"{CONFIG_MAPS}/none")
    assert error.value.is_missing
    assert not error.value.is_conflict
    assert str(error.value) == (f'GET {CONFIG_MAPS}/none: 404 configmaps "none" not found')


async def test_an_unreachable_cluster_is_told_in_one_line(
    cluster: SimulatedCluster, tmp_path: Path
) -> None:
    kubeconfig = str(tmp_path / "kubeconfig")
    await cluster.close()

    with pytest.raises(SettingsError) as error:
        async with connect(kubeconfig):
            pass
    assert str(error.value).startswith(f"cannot reach the cluster of {kubeconfig} at http://127")
    assert str(error.value).endswith("start it, or name another one with --kubeconfig")
    assert "\n" not in str(error.value)


async def test_a_proxy_of_the_environment_is_on_the_way_unless_the_server_is_exempt(
    cluster: SimulatedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "example.org")
    with pytest.raises(SettingsError, match=r"127\.0\.0\.1:1\b"):
        async with connect(str(tmp_path / "kubeconfig")):
            pass
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    async with connect(str(tmp_path / "kubeconfig")) as client:
        assert await client.request("GET", CONFIG_MAPS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no kubeconfig"),
        ("", "is not a kubeconfig"),
        ("{{{", "is not a kubeconfig"),
        ("[1, 2]", "is not a kubeconfig"),
        ("clusters: 7", "is not a kubeconfig"),
    ],
    ids=["missing", "empty", "not YAML", "a list", "wrong types"],
)
async def test_a_bad_kubeconfig_is_told_in_one_line(
    tmp_path: Path, content: str | None, told: str
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    with pytest.raises(SettingsError) as error:
        async with connect(str(path)):
            pass
    assert told in str(error.value)
    assert "\n" not in str(error.value)


async def test_the_feed_of_a_kind_that_the_cluster_lacks_ends(client: KubeClient) -> None:
    copy, synced = Copy(), asyncio.Event()
    path = "/apis/example.org/v1/things"
    feed = Feed(
        client,
        FeedSource(path=path, sink=copy, is_optional=True),
        clock=Clock(),
        on_synced=synced.set,
    )
    async with asyncio.timeout(10):
        await feed.run()
    assert (copy.lists, synced.is_set()) == (0, True)


async def test_a_kind_that_cannot_be_listed_is_not_waited_for() -> None:
    """As that of another project whose conversion webhook is down; it is followed later."""
    odd, copy, synced = OddServer(), Copy(), asyncio.Event()
    odd.is_broken = True
    async with a_client_of(odd) as client:
        feed = Feed(
            client,
            FeedSource(path="/things", sink=copy, is_optional=True),
            clock=Clock(),
            on_synced=synced.set,
        )
        task = asyncio.create_task(feed.run())
        async with asyncio.timeout(10):
            await synced.wait()
        assert not copy.values
        odd.is_broken = False
        await until(lambda: copy.values == {"list-1": "1"})
        task.cancel()
        await asyncio.wait([task])


async def test_a_kind_that_may_not_be_read_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube.api.feed._BACKOFF_FIRST_SECONDS", 0.001)
    monkeypatch.setattr("kube.api.feed._BACKOFF_MOST_SECONDS", 0.01)
    odd, copy = OddServer(), Copy()
    odd.is_broken, odd.status = True, 403
    async with a_client_of(odd) as client:
        source = FeedSource(path="/things", sink=copy, is_optional=True)
        task = asyncio.create_task(Feed(client, source, clock=Clock()).run())

        def logged() -> int:
            return sum("watch interrupted" in record.message for record in caplog.records)

        await until(lambda: odd.refusals >= 5)
        assert logged() == 1
        odd.status = 401
        await until(lambda: logged() == 2)
        odd.is_broken = False
        await until(lambda: copy.values == {"list-1": "1"})
        task.cancel()
        await asyncio.wait([task])


class OddServer:
    """An API server whose watches end in every way but the usual; each way once, in order."""

    def __init__(self) -> None:
        self.lists = 0
        self.is_broken = False
        self.status = 500
        self.refusals = 0
        self.ways: list[Callable[[web.StreamResponse], Awaitable[None]]] = []
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.is_broken:
            self.refusals += 1
            return web.json_response({"message": "it does not work"}, status=self.status)
        if "watch" not in request.query:
            self.lists += 1
            obj = {"metadata": {"name": f"list-{self.lists}"}, "data": {"value": "1"}}
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": [obj]})
        self.asked.append(request.query["resourceVersion"])
        stream = web.StreamResponse()
        await stream.prepare(request)
        if self.ways:
            await self.ways.pop(0)(stream)
        else:
            await asyncio.sleep(30)
        return stream


@asynccontextmanager
async def a_client_of(odd: OddServer) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_get("/{path:.*}", odd.answer)
    async with (
        TestServer(app) as server,
        ApiClient(Configuration(str(server.make_url("")))) as api,
        open_session(api) as session,
    ):
        yield KubeClient(api, session)


def event(kind: str, name: str, version: str) -> bytes:
    metadata = {"name": name, "resourceVersion": version}
    obj = {"type": kind, "object": {"metadata": metadata, "data": {"value": version}}}
    return orjson.dumps(obj) + b"\n"


async def test_no_object_is_too_large_for_a_watch() -> None:
    """Anybody may create one that has nine megabytes as JSON."""
    odd, copy, escaped = OddServer(), Copy(), b"\\u003c" * 1_500_000

    async def tells_of_a_large_one(stream: web.StreamResponse) -> None:
        large = event("ADDED", "large", "6").replace(b'"value":"6"', b'"value":"%b"' % escaped)
        await stream.write(large + event("ADDED", "next", "7"))

    odd.ways = [tells_of_a_large_one]
    async with a_client_of(odd) as client:
        feed = Feed(client, FeedSource(path="/things", sink=copy), clock=Clock(), watch_seconds=1)
        task = asyncio.create_task(feed.run())
        await until(lambda: len(odd.asked) == 2)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
    assert odd.asked == ["5", "7"]
    assert copy.values == {"list-1": "1", "large": "<" * 1_500_000, "next": "7"}


async def test_a_watch_may_end_in_any_way() -> None:
    odd, copy = OddServer(), Copy()

    async def breaks_off_in_a_line(stream: web.StreamResponse) -> None:
        await stream.write(event("ADDED", "whole", "6") + event("ADDED", "torn", "7")[:20])

    async def says_nothing(_: web.StreamResponse) -> None:
        await asyncio.sleep(30)

    async def bookmarks_and_ends(stream: web.StreamResponse) -> None:
        await stream.write(event("BOOKMARK", "", "9"))

    async def talks_nonsense(stream: web.StreamResponse) -> None:
        await stream.write(b'{"type": "ADDED", "object": []}\n')

    async def is_gone(stream: web.StreamResponse) -> None:
        gone = {"type": "ERROR", "object": {"code": 410, "message": "too old"}}
        await stream.write(orjson.dumps(gone) + b"\n")

    odd.ways = [breaks_off_in_a_line, says_nothing, bookmarks_and_ends, talks_nonsense, is_gone]
    async with a_client_of(odd) as client:
        feed = Feed(client, FeedSource(path="/things", sink=copy), clock=Clock(), watch_seconds=1)
        task = asyncio.create_task(feed.run())
        await until(lambda: len(odd.asked) == 6)
        task.cancel()
        await asyncio.wait([task])
    assert odd.asked == ["5", "6", "6", "9", "9", "5"]
    assert copy.values == {"list-2": "1"}, "what the first list had is gone"
