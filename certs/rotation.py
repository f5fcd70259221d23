"""Decides when each certificate is renewed, so that callers always trust the served certificate.

    1. One CA signs, and callers trust it.
    2. Long before it expires, the next CA is made, and callers trust both.
    3. After an *overlap*, when every caller has both, the next CA signs.
    4. After another overlap, when no certificate of the old CA is in use, callers stop trusting it.

Other certificates are renewed under the signing CA when they expire soon, are not valid yet because
a clock was wrong, lack a host name, or were signed by another CA. `renew` takes the next step. It
is a function of the existing certificates and the time, so any replica can run it, repeatedly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from certs.issuance import (
    KeyPair,
    is_issued_by,
    issue_ca,
    issue_client,
    issue_serving,
    parse_certificate,
)

_RENEW_CA_BEFORE = timedelta(days=365)
_CA, _SIGNING, _NEXT = "ca", "signing", "next"


@dataclass(frozen=True, slots=True)
class WantedCertificate:
    """A certificate that must exist: for serving as `hosts`, or without hosts for a client."""

    name: str
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """All certificates of an installation."""

    trusted: tuple[bytes, ...]
    """The CA certificates that callers trust, oldest first."""
    signing: KeyPair
    """The CA that signs."""
    next: KeyPair | None = None
    """The CA that will sign next."""
    others: Mapping[str, KeyPair]
    """The signed certificates, by name."""

    @property
    def bundle(self) -> bytes:
        """The CA bundle for callers."""
        return b"".join(self.trusted)

    def to_files(self) -> dict[str, bytes]:
        """Return the content of all files, by name."""
        pairs = {_SIGNING: self.signing, **self.others}
        if self.next is not None:
            pairs[_NEXT] = self.next
        files = {f"{_CA}.crt": self.bundle}
        for name, pair in pairs.items():
            files |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
        return files

    def files_of(self, name: str) -> dict[str, bytes]:
        """Return the files for the owner of one certificate."""
        pair = self.others[name]
        return {
            f"{_CA}.crt": self.bundle,
            f"{name}.crt": pair.certificate,
            f"{name}.key": pair.key,
        }


def read_files(files: Mapping[str, bytes]) -> Certificates:
    """Parse the result of `to_files`; ValueError if a file is missing or damaged."""
    pairs = {
        name: _read_pair(files, name)
        for name in (file.removesuffix(".key") for file in sorted(files) if file.endswith(".key"))
    }
    if _SIGNING not in pairs:
        raise ValueError(f"{_SIGNING}.key is missing")
    signing, following = pairs.pop(_SIGNING), pairs.pop(_NEXT, None)
    trusted = _read_authorities(files)
    for name, pair in ((_SIGNING, signing), (_NEXT, following)):
        if pair is not None and pair.certificate not in trusted:
            raise ValueError(f"{_CA}.crt does not contain {name}.crt")
    _check_signatures(trusted, pairs)
    return Certificates(trusted=trusted, signing=signing, next=following, others=pairs)


def _check_signatures(trusted: Sequence[bytes], others: Mapping[str, KeyPair]) -> None:
    """Raise ValueError for a certificate that callers would not trust."""
    named = [
        *((f"{_CA}.crt", one) for one in trusted),
        *((f"{name}.crt", pair.certificate) for name, pair in others.items()),
    ]
    for name, certificate in named:
        if not any(is_issued_by(certificate, authority) for authority in trusted):
            raise ValueError(f"{name} is damaged, or signed by a CA that is not in {_CA}.crt")


def _read_authorities(files: Mapping[str, bytes]) -> tuple[bytes, ...]:
    try:
        found = x509.load_pem_x509_certificates(files.get(f"{_CA}.crt", b""))
    except (ValueError, x509.InvalidVersion) as exc:
        raise ValueError(f"{_CA}.crt contains no certificates") from exc
    return tuple(authority.public_bytes(Encoding.PEM) for authority in found)


def _read_pair(files: Mapping[str, bytes], name: str) -> KeyPair:
    try:
        found = parse_certificate(files.get(f"{name}.crt", b""))
    except ValueError as exc:
        raise ValueError(f"{name}.crt is not a certificate") from exc
    # Formatted again, because certificates are compared as text.
    pair = KeyPair(certificate=found.public_bytes(Encoding.PEM), key=files[f"{name}.key"])
    if not pair.has_matching_key:
        raise ValueError(f"{name}.key is not the key of {name}.crt")
    return pair


def renew(
    known: Certificates | None,
    *,
    wanted: Sequence[WantedCertificate],
    now: datetime,
    overlap: timedelta,
    wants_new_ca: bool = False,
) -> Certificates:
    """Return the certificates after the next step; equal to `known` if none is due."""
    if known is None or not _has_authority(known, now=now):
        first = issue_ca(now=now)  # callers trust no valid CA any more: start again
        known = Certificates(trusted=(first.certificate,), signing=first, others={})
    # In this order, so that a CA never signs in the step that makes it.
    known = _promoted(known, now=now, overlap=overlap)
    known = _with_next(known, now=now, wants_new_ca=wants_new_ca)
    signed = {
        one.name: renew_pair(known.others.get(one.name), one, ca=known.signing, now=now)
        for one in wanted
    }
    return _without_old(replace(known, others=signed), now=now, overlap=overlap)


def _has_authority(known: Certificates, *, now: datetime) -> bool:
    """Tell whether a CA is valid now; all may be in the future if a clock was wrong."""
    return any(pair.is_valid(now) for pair in (known.signing, known.next) if pair is not None)


def _with_next(known: Certificates, *, now: datetime, wants_new_ca: bool) -> Certificates:
    ends = known.signing.expires - now < _RENEW_CA_BEFORE
    if known.next is not None and known.next.is_valid(now):
        return known
    if known.next is None and not (ends or wants_new_ca):
        return known
    following = issue_ca(now=now)
    return replace(known, next=following, trusted=(*known.trusted, following.certificate))


def _promoted(known: Certificates, *, now: datetime, overlap: timedelta) -> Certificates:
    """Let the next CA sign after the overlap, or when the old one is no longer valid."""
    following = known.next
    if following is None or not following.is_valid(now):
        return known
    if now - following.issued < overlap and known.signing.is_valid(now):
        return known
    return replace(known, signing=following, next=None)


def renew_pair(
    pair: KeyPair | None, wanted: WantedCertificate, *, ca: KeyPair, now: datetime
) -> KeyPair:
    """Return `pair` if it is what is wanted and does not expire soon, or else a new one."""
    if (
        pair is not None
        and is_issued_by(pair.certificate, ca.certificate)
        and pair.will_last(now)
        and set(wanted.hosts) <= set(pair.hosts)
    ):
        return pair
    if wanted.hosts:
        return issue_serving(ca, hosts=wanted.hosts, now=now)
    return issue_client(ca, name=wanted.name, now=now)


def _without_old(known: Certificates, *, now: datetime, overlap: timedelta) -> Certificates:
    """Drop CAs whose certificates have not been in use for an overlap."""
    newest = max((pair.issued for pair in known.others.values()), default=now)
    if now - newest < overlap:
        return known
    kept = [pair.certificate for pair in (known.signing, known.next) if pair is not None]
    return replace(known, trusted=tuple(one for one in known.trusted if one in kept))
