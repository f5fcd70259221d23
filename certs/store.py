"""Certificates in a directory: made when missing, renewed when they are about to expire.

    ca.crt  ca.key  serving.crt  serving.key

Each file appears whole or not at all. A key is written before its certificate, so a pair without a
certificate is an interrupted one and is made anew.
"""

import os
import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from certs.issue import KeyPair, issue_ca, issue_serving
from policy.errors import SettingsError

_RENEW_BEFORE = timedelta(days=90)
_PRIVATE = 0o600
_PUBLIC = 0o644


class CertificateStore:
    """The CA and the serving certificate of one installation."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def serving_paths(self) -> tuple[Path, Path]:
        """Where certificate and key are, in the order in which `ssl` wants them."""
        return self._directory / "serving.crt", self._directory / "serving.key"

    @property
    def ca_path(self) -> Path:
        """Where callers find the certificate to trust."""
        return self._directory / "ca.crt"

    def ensure(self, *, hosts: Sequence[str], now: datetime) -> KeyPair:
        """Return the CA; afterwards a serving certificate for `hosts` is there that will last."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            ca = self._load("ca")
            if ca is None or ca.expires - now < _RENEW_BEFORE:
                ca = self._save("ca", issue_ca(now=now))
            if not self._serves(ca, hosts=hosts, now=now):
                self._save("serving", issue_serving(ca, hosts=hosts, now=now))
        except (OSError, ValueError) as exc:
            raise SettingsError(
                f"cannot use the certificates in {self._directory}: {exc}; "
                "mend the directory, or remove it to have new ones made"
            ) from exc
        return ca

    def _serves(self, ca: KeyPair, *, hosts: Sequence[str], now: datetime) -> bool:
        serving = self._load("serving")
        return (
            serving is not None
            and serving.is_issued_by(ca)
            and serving.expires - now >= _RENEW_BEFORE
            and all(host in serving.hosts for host in hosts)
        )

    def _load(self, name: str) -> KeyPair | None:
        certificate = self._directory / f"{name}.crt"
        key = self._directory / f"{name}.key"
        if not (certificate.exists() and key.exists()):
            return None
        return KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes())

    def _save(self, name: str, pair: KeyPair) -> KeyPair:
        (self._directory / f"{name}.crt").unlink(missing_ok=True)
        _write(self._directory / f"{name}.key", pair.key, mode=_PRIVATE)
        _write(self._directory / f"{name}.crt", pair.certificate, mode=_PUBLIC)
        return pair


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
