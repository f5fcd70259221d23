"""Certificates in a directory: made when missing, renewed when they are about to expire.

    ca.crt  ca.key             the authority
    serving.crt  serving.key   what a server of ours serves with; each server has a name of its own
    NAME.crt  NAME.key         by which a caller proves that it is NAME

Each file appears whole or not at all. A key is written before its certificate, so a pair without a
certificate is an interrupted one and is made anew. A directory with `ca.crt` but without `ca.key`
was *given* to us, as a mounted Secret is: nothing is made there.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from certs.issuance import KeyPair, issue_ca
from certs.rotation import Wanted, renew_pair
from policy.errors import SettingsError

_PRIVATE = 0o600
_PUBLIC = 0o644


class CertificateStore:
    """The certificates of one installation, as one server of it sees them."""

    def __init__(self, directory: Path, *, serving: str = "serving") -> None:
        self._directory = directory
        self._serving = serving

    @property
    def serving_paths(self) -> tuple[Path, Path]:
        """Where certificate and key are, in the order in which `ssl` wants them."""
        return self.paths_of(self._serving)

    @property
    def ca_path(self) -> Path:
        """Where callers find the certificate to trust."""
        return self.paths_of("ca")[0]

    @property
    def is_given(self) -> bool:
        """Whether somebody else makes and renews what is here."""
        certificate, key = self.paths_of("ca")
        return certificate.exists() and not key.exists()

    def paths_of(self, name: str) -> tuple[Path, Path]:
        """Where the certificate and the key of that name are."""
        return self._directory / f"{name}.crt", self._directory / f"{name}.key"

    def ensure(
        self, *, hosts: Sequence[str], now: datetime, clients: Sequence[str] = ()
    ) -> KeyPair:
        """Return the CA; afterwards a serving certificate for `hosts` is there that will last.

        So are the certificates by which the `clients` call.
        """
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._alone():
                ca = self._load("ca")
                if ca is None or not ca.will_last(now):
                    ca = self._save("ca", issue_ca(now=now))
                for one in (Wanted(self._serving, tuple(hosts)), *map(Wanted, clients)):
                    known = self._load(one.name)
                    renewed = renew_pair(known, one, ca=ca, now=now)
                    if renewed is not known:
                        self._save(one.name, renewed)
        except (OSError, ValueError) as exc:
            raise SettingsError(
                f"cannot use the certificates in {self._directory}: {exc}; "
                "mend the directory, or remove it to have new ones made"
            ) from exc
        return ca

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep others out: two that start at once would make two authorities."""
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
