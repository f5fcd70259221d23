"""The certificates of a running server are renewed and followed."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs.clients import read_client
from certs.issuance import issue_ca, issue_serving
from certs.serving_certificates import ServingCertificates, follow_client_ca
from certs.store import CertificateStore
from certs.tls import build_context_of
from policy.errors import SettingsError
from tests.support.eventually import eventually
from tests.support.handshakes import shake_hands

HOSTS = ("127.0.0.1",)


class ServingWorld:
    """A directory of certificates, and a clock that tests move."""

    def __init__(self, directory: Path, *, days: int = 0) -> None:
        self.directory = directory
        self.days = days
        self.serving = self.serve()

    def serve(self) -> ServingCertificates:
        store = CertificateStore(self.directory, serving="extender")
        return ServingCertificates(
            store,
            hosts=HOSTS,
            clients=["caller"],
            client_ca=store.ca_path,
            utc_now=lambda: datetime.now(UTC) + timedelta(days=self.days),
        )

    def path(self, name: str) -> Path:
        return self.directory / name

    def meet(self, *, shows: bool = True) -> tuple[str, bytes]:
        """Connect as a caller; return its identity and the certificate of the server."""
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        if shows:
            context.load_cert_chain(self.path("caller.crt"), self.path("caller.key"))
        server, client = shake_hands(self.serving.context, context, "127.0.0.1")
        shown, served = server.getpeercert(binary_form=True), client.getpeercert(binary_form=True)
        caller = read_client(shown) if shown else None
        assert served is not None
        return caller.name if caller else "", served

    def served_is_stored(self) -> bool:
        stored = ssl.PEM_cert_to_DER_cert(self.path("extender.crt").read_text())
        return self.meet()[1] == stored


def _following(serving: ServingCertificates) -> AbstractAsyncContextManager[None]:
    return _running(serving.run(look_seconds=0.005))


@asynccontextmanager
async def _running(loop: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(loop)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_callers_are_known_and_a_caller_without_certificate_is_let_in(tmp_path: Path) -> None:
    world = ServingWorld(tmp_path)
    assert world.meet()[0] == "caller"
    assert world.meet(shows=False)[0] == ""


async def test_what_expires_soon_is_renewed_while_serving(tmp_path: Path) -> None:
    world = ServingWorld(tmp_path, days=-300)
    _, before = world.meet()
    world.days = 0
    async with _following(world.serving):
        await eventually(lambda: world.meet(shows=False)[1] != before)
    assert world.served_is_stored()


async def test_given_certificates_are_followed_and_never_made(tmp_path: Path) -> None:
    world = ServingWorld(tmp_path / "given", days=-300)
    other = ServingWorld(tmp_path / "other", days=-300)
    world.path("ca.key").unlink()
    world.days = 0
    for name in ("ca.crt", "extender.crt", "extender.key", "caller.crt", "caller.key"):
        world.path(name).write_bytes(other.path(name).read_bytes())
    before = world.path("extender.crt").read_bytes()
    async with _following(world.serving):
        await eventually(lambda: len(world.serving.context.get_ca_certs()) == 2)
    assert world.served_is_stored()
    assert world.path("extender.crt").read_bytes() == before


async def test_half_a_change_leaves_the_old_certificate_in_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = ServingWorld(tmp_path)
    before = world.meet()
    world.path("ca.key").unlink()
    world.path("extender.key").write_bytes(world.path("caller.key").read_bytes())
    async with _following(world.serving):
        await eventually(lambda: "certificates not reloaded" in caplog.messages)
    assert world.meet() == before


def test_given_certificates_that_are_not_there_are_told_in_one_line(tmp_path: Path) -> None:
    world = ServingWorld(tmp_path)
    world.path("ca.key").unlink()
    world.path("extender.crt").unlink()
    with pytest.raises(SettingsError, match=r"cannot serve TLS with .*extender\.crt"):
        world.serve()


async def test_the_ca_of_callers_is_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.now(UTC)
    old, new = issue_ca(now=now), issue_ca(now=now)
    path = tmp_path / "callers.crt"
    path.write_bytes(old.certificate)
    context = build_context_of(issue_serving(old, hosts=HOSTS, now=now), client_ca=path)
    async with _running(follow_client_ca(context, path, look_seconds=0.005)):
        path.write_bytes(b"nonsense")
        await eventually(lambda: "client CA not reloaded" in caplog.messages)
        assert len(context.get_ca_certs()) == 1
        path.write_bytes(new.certificate)
        await eventually(lambda: len(context.get_ca_certs()) == 2)
