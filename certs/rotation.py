"""When which certificate is renewed, so that no caller ever meets one that it does not trust.

    one CA signs, and callers trust it
      → the next CA is made, long before the end, and callers are told of both
      → after an *overlap*, when every caller has heard of it, the next CA signs
      → after another, when nothing of the old CA is in use, callers forget it

Other certificates are renewed under the CA that signs, whenever they will not last, have not begun
(a clock was wrong), lack a name or are of another CA. All of it is in one `Certificates`, and
`renew` takes it one step on: a function of what there is and of the time, so that whoever does it
next, or again, comes to the same.
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
class Wanted:
    """A certificate that should be there: to serve as `hosts`, or, without any, to call with."""

    name: str
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """All certificates of an installation."""

    trusted: tuple[bytes, ...]
    """The CAs that callers should believe, oldest first."""
    signing: KeyPair
    """The CA that signs."""
    next: KeyPair | None = None
    """The CA that will."""
    others: Mapping[str, KeyPair]
    """What was signed, by name."""

    @property
    def bundle(self) -> bytes:
        """What callers are given to believe in."""
        return b"".join(self.trusted)

    def to_files(self) -> dict[str, bytes]:
        """Write everything down."""
        pairs = {_SIGNING: self.signing, **self.others}
        if self.next is not None:
            pairs[_NEXT] = self.next
        files = {f"{_CA}.crt": self.bundle}
        for name, pair in pairs.items():
            files |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
        return files

    def files_of(self, name: str) -> dict[str, bytes]:
        """Write down what the owner of one certificate needs."""
        pair = self.others[name]
        return {
            f"{_CA}.crt": self.bundle,
            f"{name}.crt": pair.certificate,
            f"{name}.key": pair.key,
        }


def read_files(files: Mapping[str, bytes]) -> Certificates:
    """Understand what was written down; ValueError if a part is missing or damaged."""
    pairs = {
        name: _read_pair(files, name)
        for name in (file.removesuffix(".key") for file in sorted(files) if file.endswith(".key"))
    }
    if _SIGNING not in pairs:
        raise ValueError(f"there is no {_SIGNING}.key")
    signing, following = pairs.pop(_SIGNING), pairs.pop(_NEXT, None)
    trusted = _read_authorities(files)
    for name, pair in ((_SIGNING, signing), (_NEXT, following)):
        if pair is not None and pair.certificate not in trusted:
            raise ValueError(f"{_CA}.crt lacks {name}.crt")
    _check_signatures(trusted, pairs)
    return Certificates(trusted=trusted, signing=signing, next=following, others=pairs)


def _check_signatures(trusted: Sequence[bytes], others: Mapping[str, KeyPair]) -> None:
    """Raise ValueError for what callers would not believe: it must not be served, or told them."""
    named = [
        *((f"{_CA}.crt", one) for one in trusted),
        *((f"{name}.crt", pair.certificate) for name, pair in others.items()),
    ]
    for name, certificate in named:
        if not any(is_issued_by(certificate, authority) for authority in trusted):
            raise ValueError(f"{name} is damaged, or of a CA that {_CA}.crt lacks")


def _read_authorities(files: Mapping[str, bytes]) -> tuple[bytes, ...]:
    try:
        found = x509.load_pem_x509_certificates(files.get(f"{_CA}.crt", b""))
    except (ValueError, x509.InvalidVersion) as exc:
        raise ValueError(f"{_CA}.crt holds no certificates") from exc
    return tuple(authority.public_bytes(Encoding.PEM) for authority in found)


def _read_pair(files: Mapping[str, bytes], name: str) -> KeyPair:
    try:
        found = parse_certificate(files.get(f"{name}.crt", b""))
    except ValueError as exc:
        raise ValueError(f"{name}.crt is no certificate") from exc
    # As we write it, whoever wrote it last: certificates are compared as text.
    pair = KeyPair(certificate=found.public_bytes(Encoding.PEM), key=files[f"{name}.key"])
    if not pair.fits:
        raise ValueError(f"{name}.key is not the key of {name}.crt")
    return pair


def renew(
    known: Certificates | None,
    *,
    wanted: Sequence[Wanted],
    now: datetime,
    overlap: timedelta,
    wants_new_ca: bool = False,
) -> Certificates:
    """Return what there should be now; the same if nothing is to be done."""
    if known is None or not _has_authority(known, now=now):
        first = issue_ca(now=now)  # nobody can be called any more
        known = Certificates(trusted=(first.certificate,), signing=first, others={})
    # In this order: a CA never signs in the step that makes it.
    known = _promoted(known, now=now, overlap=overlap)
    known = _with_next(known, now=now, wants_new_ca=wants_new_ca)
    signed = {
        one.name: renew_pair(known.others.get(one.name), one, ca=known.signing, now=now)
        for one in wanted
    }
    return _without_old(replace(known, others=signed), now=now, overlap=overlap)


def _has_authority(known: Certificates, *, now: datetime) -> bool:
    """Tell whether a CA is good now: a clock that was wrong may have made all of later times."""
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
    """Let the next CA sign once everybody had time to hear of it, or the old one is over."""
    following = known.next
    if following is None or not following.is_valid(now):
        return known
    if now - following.issued < overlap and known.signing.is_valid(now):
        return known
    return replace(known, signing=following, next=None)


def renew_pair(pair: KeyPair | None, wanted: Wanted, *, ca: KeyPair, now: datetime) -> KeyPair:
    """Return a certificate of this CA that will last: the one there is, or a new one."""
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
    """Forget CAs of which nothing has been in use for an overlap."""
    newest = max((pair.issued for pair in known.others.values()), default=now)
    if now - newest < overlap:
        return known
    kept = [pair.certificate for pair in (known.signing, known.next) if pair is not None]
    return replace(known, trusted=tuple(one for one in known.trusted if one in kept))
