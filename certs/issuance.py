"""Make a certificate authority, and certificates under it: to serve with, or to call with.

The CA outlives many of the others, since callers hold a copy of it (`caBundle`,
kube-scheduler's `caFile`) that changes seldom.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
# Clocks of a cluster differ; a certificate must be valid on the slow ones too.
_BACKDATE = timedelta(minutes=10)
_RENEW_BEFORE = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def expires(self) -> datetime:
        """The moment from which on callers refuse the certificate."""
        return parse_certificate(self.certificate).not_valid_after_utc

    def is_valid(self, now: datetime) -> bool:
        """True if callers accept the certificate: it has begun, and is not over."""
        certificate = parse_certificate(self.certificate)
        return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc

    def will_last(self, now: datetime) -> bool:
        """True if the certificate is valid now and need not be renewed soon."""
        return self.is_valid(now) and self.expires - now >= _RENEW_BEFORE

    @property
    def fits(self) -> bool:
        """True when the key is the certificate's."""
        try:
            public = load_pem_private_key(self.key, password=None).public_key()
            return parse_certificate(self.certificate).public_key() == public
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return False

    @property
    def issued(self) -> datetime:
        """The moment at which it was made."""
        return parse_certificate(self.certificate).not_valid_before_utc + _BACKDATE

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names and addresses that the certificate is good for."""
        extensions = parse_certificate(self.certificate).extensions
        try:
            names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ()
        return tuple(str(name.value) for name in names)


def parse_certificate(pem: bytes) -> x509.Certificate:
    """Read a certificate; ValueError for whatever is wrong with it."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except x509.InvalidVersion as exc:
        raise ValueError(str(exc)) from exc


def is_issued_by(certificate: bytes, ca: bytes) -> bool:
    """Tell whether a CA signed a certificate as it is: a bit that is another one shows, too."""
    found = parse_certificate(certificate)
    try:
        found.verify_directly_issued_by(parse_certificate(ca))
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    # Whole bytes, which is not looked at there, but by the API server.
    return found.public_bytes(Encoding.DER).endswith(b"\0" + found.signature)


def issue_ca(*, now: datetime) -> KeyPair:
    """Make a certificate authority that signs itself."""
    return _issue("cellgate-ca", ca=None, now=now)


def issue_serving(ca: KeyPair, *, hosts: Sequence[str], now: datetime) -> KeyPair:
    """Make a certificate for a server that is reached as any of `hosts` (names or addresses)."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    return _issue("cellgate", ca=ca, now=now, extensions=[usage, names])


def issue_client(ca: KeyPair, *, name: str, now: datetime) -> KeyPair:
    """Make a certificate by which a caller proves that it is `name`; it cannot serve."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _issue(name, ca=ca, now=now, extensions=[usage])


def _issue(
    name: str,
    *,
    ca: KeyPair | None,
    now: datetime,
    extensions: Sequence[x509.ExtensionType] = (),
) -> KeyPair:
    """Make a certificate that a CA signs; without one, a CA that signs itself."""
    is_ca, begins = ca is None, now.astimezone(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    key = ec.generate_private_key(ec.SECP256R1())
    issuer, ca_key = subject, key
    if ca is not None:
        issuer, ca_key = parse_certificate(ca.certificate).subject, _load_key(ca.key)
    identifier = (
        x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        if is_ca
        else x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _BACKDATE)
        .not_valid_after(begins + (CA_LIFETIME if is_ca else LEAF_LIFETIME))
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(is_ca, 0 if is_ca else None), critical=True)
        .add_extension(_key_usage(signs=is_ca), critical=True)
    )
    for extension in (identifier, *extensions):
        builder = builder.add_extension(extension, critical=False)
    return KeyPair(
        certificate=builder.sign(ca_key, hashes.SHA256()).public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the CA's key is not an elliptic-curve key")
    return key
