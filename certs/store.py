"""Certificates in a directory: made when missing, renewed before they expire.

    ca.crt  ca.key             the certificate authority
    serving.crt  serving.key   the certificate of a server; each server has its own name for it
    NAME.crt  NAME.key         the client certificate of NAME

Each file is written atomically. A key is written before its certificate, so a key without a
certificate comes from an interrupted write, and both are made again. A directory with `ca.crt` but
without `ca.key` is *given*, like a mounted Secret: nothing is written there.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from certs.issuance import KeyPair, issue_ca
from certs.rotation import WantedCertificate, renew_pair
from policy.errors import SettingsError

_PRIVATE = 0o600
_PUBLIC = 0o644


class CertificateStore:
    """The certificates of one installation, for one of its servers."""

    def __init__(self, directory: Path, *, serving: str = "serving") -> None:
        self._directory = directory
        self._serving = serving

    @property
    def serving_paths(self) -> tuple[Path, Path]:
        """The paths of the serving certificate and its key, in the order of `load_cert_chain`."""
        return self.paths_of(self._serving)

    @property
    def ca_path(self) -> Path:
        """The path of the CA certificate, which callers trust."""
        return self.paths_of("ca")[0]

    @property
    def is_given(self) -> bool:
        """Whether the certificates are made and renewed elsewhere."""
        certificate, key = self.paths_of("ca")
        return certificate.exists() and not key.exists()

    def paths_of(self, name: str) -> tuple[Path, Path]:
        """Return the paths of a certificate and its key."""
        return self._directory / f"{name}.crt", self._directory / f"{name}.key"

    def ensure(
        self, *, hosts: Sequence[str], now: datetime, clients: Sequence[str] = ()
    ) -> KeyPair:
        """Make or renew the CA, a serving certificate for `hosts` and client certificates.

        Returns the CA.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                ca = self._load("ca")
                if ca is None or not ca.will_last(now):
                    ca = self._save("ca", issue_ca(now=now))
                serving = WantedCertificate(self._serving, tuple(hosts))
                for one in (serving, *map(WantedCertificate, clients)):
                    known = self._load(one.name)
                    renewed = renew_pair(known, one, ca=ca, now=now)
                    if renewed is not known:
                        self._save(one.name, renewed)
        except (OSError, ValueError) as exc:
            raise SettingsError(
                f"cannot use the certificates in {self._directory}: {exc}; fix the directory, or "
                "remove it to create new certificates"
            ) from exc
        return ca

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the directory: two processes that start at once must not make two CAs."""
        handle = os.open(self._directory, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _load(self, name: str) -> KeyPair | None:
        certificate, key = self.paths_of(name)
        if not (certificate.exists() and key.exists()):
            return None
        return KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes())

    def _save(self, name: str, pair: KeyPair) -> KeyPair:
        certificate, key = self.paths_of(name)
        certificate.unlink(missing_ok=True)
        _write(key, pair.key, mode=_PRIVATE)
        _write(certificate, pair.certificate, mode=_PUBLIC)
        return pair


def _write(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file atomically."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
