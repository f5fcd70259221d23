"""Certificates in a directory: made, kept, renewed, and mended after an interruption."""

import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.store import CertificateStore
from certs.tls import build_server_context
from policy.errors import SettingsError
from tests.support.handshakes import shake_hands

NOW = datetime(2026, 11, 16, tzinfo=UTC)
HOSTS = ("127.0.0.1", "cellgate-webhook.cellgate-system.svc")


def _contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_made_once_and_then_kept(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path / "certs")
    ca = store.ensure(hosts=HOSTS, now=NOW)
    before = _contents(tmp_path / "certs")

    assert store.ensure(hosts=HOSTS, now=NOW + timedelta(days=200)) == ca
    assert _contents(tmp_path / "certs") == before
    assert list(before) == ["ca.crt", "ca.key", "serving.crt", "serving.key"]


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    CertificateStore(tmp_path / "certs").ensure(hosts=HOSTS, now=NOW)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*.key")}
    assert modes == {"ca.key": 0o600, "serving.key": 0o600}
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700


def test_the_serving_certificate_is_renewed_under_the_same_ca(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    store.ensure(hosts=HOSTS, now=NOW)
    before = _contents(tmp_path)

    store.ensure(hosts=HOSTS, now=NOW + timedelta(days=300))

    after = _contents(tmp_path)
    changed = [name for name in before if before[name] != after[name]]
    assert changed == ["serving.crt", "serving.key"]


def test_what_a_fast_clock_made_is_made_again(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    later = store.ensure(hosts=HOSTS, clients=["caller"], now=NOW + timedelta(days=100))
    ca = store.ensure(hosts=HOSTS, clients=["caller"], now=NOW)
    assert ca != later
    assert ca.is_valid(NOW)


def test_a_new_host_makes_a_new_serving_certificate(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    store.ensure(hosts=HOSTS, now=NOW)
    before = _contents(tmp_path)["serving.crt"]

    store.ensure(hosts=[*HOSTS, "::1"], now=NOW)

    assert _contents(tmp_path)["serving.crt"] != before


def test_an_interrupted_renewal_of_the_ca_is_finished(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    store.ensure(hosts=HOSTS, now=NOW)
    stale = {name: (tmp_path / name).read_bytes() for name in ("serving.crt", "serving.key")}
    store.ca_path.unlink()
    ca = store.ensure(hosts=HOSTS, now=NOW)
    for name, content in stale.items():
        (tmp_path / name).write_bytes(content)

    assert store.ensure(hosts=HOSTS, now=NOW) == ca
    assert (tmp_path / "serving.crt").read_bytes() != stale["serving.crt"]
    build_server_context(*store.serving_paths)


def test_a_client_that_trusts_the_ca_trusts_the_server(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    store.ensure(hosts=HOSTS, now=datetime.now(UTC))
    server = build_server_context(*store.serving_paths)
    client = ssl.create_default_context(cafile=store.ca_path)

    _, end = shake_hands(server, client, "127.0.0.1")
    assert end.version() == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client, "127.0.0.2")


@pytest.mark.parametrize("broken", ["ca.crt", "ca.key"])
def test_a_broken_file_is_told_in_one_line(tmp_path: Path, broken: str) -> None:
    store = CertificateStore(tmp_path)
    store.ensure(hosts=HOSTS, now=NOW)
    (tmp_path / broken).write_text("garbage")
    (tmp_path / "serving.crt").unlink()

    with pytest.raises(SettingsError, match="remove it to create new certificates") as error:
        store.ensure(hosts=HOSTS, now=NOW)
    assert "\n" not in str(error.value)


def test_each_client_has_a_certificate_of_its_own_that_is_renewed(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path, serving="extender")
    store.ensure(hosts=HOSTS, clients=["caller"], now=NOW)
    before = _contents(tmp_path)
    assert sorted(before) == [
        *("ca.crt", "ca.key", "caller.crt", "caller.key", "extender.crt", "extender.key"),
    ]

    store.ensure(hosts=HOSTS, clients=["caller"], now=NOW + timedelta(days=200))
    assert _contents(tmp_path) == before
    store.ensure(hosts=HOSTS, clients=["caller"], now=NOW + timedelta(days=300))
    assert _contents(tmp_path)["caller.crt"] != before["caller.crt"]
    assert _contents(tmp_path)["ca.crt"] == before["ca.crt"]


def test_two_that_start_at_once_have_one_ca(tmp_path: Path) -> None:
    stores = [CertificateStore(tmp_path, serving=f"server{number}") for number in range(8)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        authorities = list(pool.map(lambda store: store.ensure(hosts=HOSTS, now=NOW), stores))
    assert len(set(authorities)) == 1


def test_a_ca_without_its_key_is_given(tmp_path: Path) -> None:
    store = CertificateStore(tmp_path)
    assert not store.is_given
    store.ensure(hosts=HOSTS, now=NOW)
    assert not store.is_given
    (tmp_path / "ca.key").unlink()
    assert store.is_given
