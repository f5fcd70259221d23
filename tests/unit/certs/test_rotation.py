"""At every moment of a rotation, callers trust the certificate that is served."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from certs.issuance import KeyPair, is_issued_by
from certs.rotation import Certificates, WantedCertificate, read_files, renew

START = datetime(2026, 1, 1, tzinfo=UTC)
OVERLAP = timedelta(days=7)
WANTED = (
    WantedCertificate("webhook", ("cellgate-webhook.cellgate-system.svc",)),
    WantedCertificate("caller"),
)


def _renew(known: Certificates | None, *, days: float, wants_new_ca: bool = False) -> Certificates:
    return renew(
        known,
        wanted=WANTED,
        now=START + timedelta(days=days),
        overlap=OVERLAP,
        wants_new_ca=wants_new_ca,
    )


OTHER = _renew(None, days=0).to_files()


def _is_issued_by(pair: KeyPair, ca: KeyPair) -> bool:
    return is_issued_by(pair.certificate, ca.certificate)


@pytest.fixture
def first() -> Certificates:
    return _renew(None, days=0)


def test_nothing_changes_while_nothing_ends(first: Certificates) -> None:
    assert _renew(first, days=0) == _renew(first, days=200) == first
    assert first.others["webhook"].hosts == WANTED[0].hosts
    assert _is_issued_by(first.others["caller"], first.signing)


def test_a_certificate_is_renewed_long_before_its_end(first: Certificates) -> None:
    later = _renew(first, days=280)
    assert later.others["webhook"].expires > START + timedelta(days=600)
    assert (later.signing, later.trusted) == (first.signing, first.trusted)


def test_a_certificate_that_lacks_a_name_is_made_anew(first: Certificates) -> None:
    hosts = (*WANTED[0].hosts, "localhost")
    more = renew(first, wanted=[WantedCertificate("webhook", hosts)], now=START, overlap=OVERLAP)
    assert more.others["webhook"].hosts == hosts
    assert "caller" not in more.others


def test_a_new_ca_is_trusted_before_it_signs_and_the_old_one_after(first: Certificates) -> None:
    both = _renew(first, days=1, wants_new_ca=True)
    assert len(both.trusted) == 2
    assert both.others == first.others
    assert _renew(both, days=7.9) == both

    promoted = _renew(both, days=8)
    assert promoted.signing == both.next
    assert all(_is_issued_by(pair, promoted.signing) for pair in promoted.others.values())
    assert promoted.trusted == both.trusted
    assert _renew(promoted, days=14.9) == promoted

    settled = _renew(promoted, days=15)
    assert settled.trusted == (settled.signing.certificate,)
    assert _renew(settled, days=16) == settled


def test_in_twenty_years_callers_always_trust_the_certificates(first: Certificates) -> None:
    """A replica renews every fifth day, and callers get the CA bundle at the next renewal."""
    known = heard = first
    authorities = {first.signing.certificate}
    for day in range(1, 20 * 365, 5):
        known = _renew(known, days=day)
        now = START + timedelta(days=day)
        for pair in known.others.values():
            signers = [ca for ca in heard.trusted if ca == known.signing.certificate]
            assert _is_issued_by(pair, known.signing)
            assert signers, f"day {day}: a caller does not know the CA yet"
            assert pair.expires > now
        authorities.add(known.signing.certificate)
        heard = known
    assert len(authorities) == 3


def test_a_ca_that_has_ended_is_replaced_at_once(first: Certificates) -> None:
    late = _renew(first, days=4000)
    assert late.signing.expires > START + timedelta(days=4000)


def test_what_a_fast_clock_made_is_replaced_once_the_clock_is_right(first: Certificates) -> None:
    """Callers refuse a certificate that is not valid yet: a leaf, the next CA, or all."""
    leaf = _renew(replace(first, others=_renew(first, days=300).others), days=1)
    assert leaf.signing == first.signing
    assert all(pair.is_valid(START + timedelta(days=1)) for pair in leaf.others.values())

    early = _renew(first, days=300, wants_new_ca=True)
    following = _renew(early, days=1).next
    assert following is not None
    assert following.is_valid(START + timedelta(days=1))

    later = _renew(_renew(None, days=400), days=1)
    assert later.signing.is_valid(START + timedelta(days=1))
    assert all(_is_issued_by(pair, later.signing) for pair in later.others.values())
    assert later.trusted == (later.signing.certificate,)


def test_what_was_written_down_is_understood(first: Certificates) -> None:
    both = _renew(first, days=1, wants_new_ca=True)
    assert read_files(both.to_files()) == both
    assert set(both.files_of("caller")) == {"ca.crt", "caller.crt", "caller.key"}


def test_files_in_another_layout_are_read(first: Certificates) -> None:
    spaced = {name: b"# ours\n" + text + b"\n\n" for name, text in first.to_files().items()}
    understood = read_files(spaced)
    assert (understood.trusted, understood.signing.certificate) == (
        first.trusted,
        first.signing.certificate,
    )
    assert _renew(understood, days=30).trusted == first.trusted


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"signing.key": None}, "signing.key is missing"),
        ({"webhook.crt": b"nonsense"}, "webhook.crt is not a certificate"),
        ({"webhook.crt": None}, "webhook.crt is not a certificate"),
        ({"ca.crt": b"nonsense"}, "ca.crt contains no certificates"),
        ({"ca.crt": b""}, "ca.crt contains no certificates"),
        ({"ca.crt": None}, "ca.crt contains no certificates"),
        ({"ca.crt": OTHER["ca.crt"]}, "ca.crt does not contain signing.crt"),
        ({"webhook.key": OTHER["webhook.key"]}, "webhook.key is not the key of webhook.crt"),
        ({"signing.key": b"nonsense"}, "signing.key is not the key of signing.crt"),
    ],
    ids=[
        "no CA",
        "a damaged certificate",
        "a key without one",
        "damaged trust",
        "empty trust",
        "no trust",
        "trust in others",
        "another key",
        "a damaged key",
    ],
)
def test_what_is_damaged_is_told(
    first: Certificates, change: dict[str, bytes | None], told: str
) -> None:
    merged = {**first.to_files(), **change}
    with pytest.raises(ValueError, match=told):
        read_files({name: content for name, content in merged.items() if content is not None})


def _damaged(pem: bytes) -> Iterator[bytes]:
    """Yield a certificate with one bit turned, another one each time."""
    begin, *lines, end = pem.splitlines()
    der = base64.b64decode(b"".join(lines))
    for place in range(len(der)):
        turned = bytes((der[place] ^ 1 << place % 8,))
        text = base64.encodebytes(der[:place] + turned + der[place + 1 :])
        yield b"\n".join((begin, text.strip(), end, b""))


@pytest.mark.filterwarnings("ignore:Parsed a serial number")
@pytest.mark.parametrize("name", ["webhook.crt", "signing.crt", "ca.crt"])
def test_whichever_bit_is_damaged_is_told(first: Certificates, name: str) -> None:
    """Damage that is not reported would be served, or would crash the reader."""
    files = first.to_files()
    for content in _damaged(files[name]):
        both = {"signing.crt": content, "ca.crt": content} if name == "signing.crt" else {}
        with pytest.raises(ValueError, match=r"\.(crt|key) "):
            read_files({**files, name: content, **both})
