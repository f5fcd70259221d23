"""A service over real sockets: probes, bounds, errors, and an end that drops no answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest
from aiohttp import web

from policy.errors import SettingsError
from service import slow_connections
from service.health import Health
from service.http import build_app
from service.metrics import ServiceMetrics
from service.runner import RunningService, run_service
from service.settings import Address, parse_address

ANY_PORT = Address(host="127.0.0.1", port=0)


def _serve(
    health: Health, app: web.Application | None = None, *, address: Address = ANY_PORT
) -> AbstractAsyncContextManager[RunningService]:
    return run_service(app or _app(health), name="test", health=health, address=address)


def _app(health: Health) -> web.Application:
    return build_app(health=health, metrics=ServiceMetrics(), max_body_bytes=1000)


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def _get(http: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with http.get(url) as response:
        return response.status, await response.text()


async def test_probes_tell_what_is_missing(http: aiohttp.ClientSession) -> None:
    health = Health(["pods synced"])
    async with _serve(health) as service:
        assert await _get(http, f"{service.url}/healthz") == (200, "ok\n")
        assert await _get(http, f"{service.url}/readyz") == (503, "waiting for: pods synced\n")

        health.meet("pods synced")
        assert await _get(http, f"{service.url}/readyz") == (200, "ok\n")


async def test_a_dead_background_task_shows_in_both_probes(http: aiohttp.ClientSession) -> None:
    async def die() -> None:
        raise ValueError("broken")

    async with _serve(Health()) as service:
        service.supervisor.start("feed", die())
        await asyncio.sleep(0)
        dead = (503, "background task feed died\n")
        assert await _get(http, f"{service.url}/healthz") == dead
        assert await _get(http, f"{service.url}/readyz") == dead


async def test_requests_are_counted_by_route(http: aiohttp.ClientSession) -> None:
    health = Health()
    app = _app(health)

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    app.router.add_get("/v1/gangs/{name}", hello)
    async with _serve(health, app) as service:
        await _get(http, f"{service.url}/v1/gangs/bert")
        await _get(http, f"{service.url}/nowhere")
        _, metrics = await _get(http, f"{service.url}/metrics")

    counted = 'cellgate_http_requests_total{route="/v1/gangs/{name}",status="200"} 1.0'
    assert counted in metrics
    assert 'cellgate_http_requests_total{route="unknown",status="404"} 1.0' in metrics
    assert "cellgate_ready 1.0" in metrics


async def test_a_wrong_path_or_method_is_told_what_to_use(http: aiohttp.ClientSession) -> None:
    health = Health()
    async with _serve(health, _app(health)) as service:
        for method, path, told in (
            ("GET", "/nonsense", "there is no path /nonsense"),
            ("DELETE", "/healthz", "DELETE is not allowed here; use GET or HEAD"),
        ):
            async with http.request(method, f"{service.url}{path}") as answer:
                assert (await answer.json())["error"] == told


async def test_a_body_that_is_too_large_is_refused(http: aiohttp.ClientSession) -> None:
    health = Health()
    app = _app(health)

    async def read(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app.router.add_post("/echo", read)
    async with (
        _serve(health, app) as service,
        http.post(f"{service.url}/echo", data=b"x" * 2000) as response,
    ):
        assert response.status == 413
        assert await response.json() == {"error": "Maximum request body size 1000 exceeded."}


async def test_a_fault_of_ours_is_logged_and_not_shown(
    http: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    health = Health()
    app = _app(health)

    async def fail(_: web.Request) -> web.Response:
        raise ValueError("secret")

    app.router.add_get("/fail", fail)
    with caplog.at_level(logging.ERROR):
        async with _serve(health, app) as service:
            answer = await _get(http, f"{service.url}/fail")

    assert answer == (500, '{"error":"internal error; see the log"}')
    assert [record.message for record in caplog.records] == ["request failed"]


async def test_an_answer_in_flight_is_finished_and_the_connection_closed(
    http: aiohttp.ClientSession,
) -> None:
    health = Health()
    app = _app(health)
    entered, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        entered.set()
        await may_answer.wait()
        return web.Response(text="done")

    app.router.add_get("/slow", slow)
    async with asyncio.TaskGroup() as group:
        async with _serve(health, app) as service:
            request = group.create_task(http.get(f"{service.url}/slow").__aenter__())
            await entered.wait()
            asyncio.get_running_loop().call_later(0.05, may_answer.set)
        response = await request
    assert (response.status, await response.text()) == (200, "done")
    assert response.headers["Connection"] == "close"


async def test_a_body_that_still_arrives_is_read_and_answered(http: aiohttp.ClientSession) -> None:
    health = Health()
    app = _app(health)
    arrived = asyncio.Event()

    async def read(request: web.Request) -> web.Response:
        arrived.set()
        return web.Response(body=await request.read())

    async def slow_body() -> AsyncIterator[bytes]:
        yield b"one "
        await asyncio.sleep(0.5)
        yield b"two"

    app.router.add_post("/echo", read)
    async with asyncio.TaskGroup() as group:
        async with _serve(health, app) as service:
            url = f"{service.url}/echo"
            request = group.create_task(http.post(url, data=slow_body()).__aenter__())
            await arrived.wait()
        response = await request
    assert (response.status, await response.text()) == (200, "one two")


async def test_nobody_listens_after_the_end(http: aiohttp.ClientSession) -> None:
    async with _serve(Health()) as service:
        url = service.url
    with pytest.raises(aiohttp.ClientConnectorError):
        await _get(http, f"{url}/healthz")


async def test_a_taken_port_is_told_in_one_line() -> None:
    async with _serve(Health()) as service:
        address = parse_address(service.url.removeprefix("http://"), flag="--listen")
        with pytest.raises(SettingsError) as error:
            async with _serve(Health(), address=address):
                pass
    assert str(error.value) == (
        f"cannot listen on {address}: another process listens there; "
        "stop it, or choose another address with --listen"
    )


async def test_a_connection_that_sends_no_whole_header_is_closed(
    http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_connections, "_HEADER_SECONDS", 0.2)
    monkeypatch.setattr(slow_connections, "_EVERY_SECONDS", 0.05)
    async with _serve(Health()) as service:
        assert (await _get(http, f"{service.url}/healthz"))[0] == 200
        port = int(service.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost:")
        async with asyncio.timeout(5):
            assert await reader.read() == b"", "closed by the server"
        writer.close()
        assert (await _get(http, f"{service.url}/healthz"))[0] == 200, "one that has asked stays"
