"""Makes a certificate authority (CA), and serving and client certificates that it signs.

A CA is valid for much longer than the certificates it signs, because callers have a copy of it
(`caBundle`, the `caFile` of kube-scheduler) that rarely changes.
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
# The clocks of a cluster differ: a certificate must be valid on machines with a slow clock too.
_BACKDATE = timedelta(minutes=10)
_RENEW_BEFORE = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def expires(self) -> datetime:
        """When the certificate stops being valid."""
        return parse_certificate(self.certificate).not_valid_after_utc

    def is_valid(self, now: datetime) -> bool:
        """Whether the certificate is valid now: it has begun, and has not expired."""
        certificate = parse_certificate(self.certificate)
        return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc

    def will_last(self, now: datetime) -> bool:
        """Whether the certificate is valid now, and does not have to be renewed soon."""
        return self.is_valid(now) and self.expires - now >= _RENEW_BEFORE

    @property
    def has_matching_key(self) -> bool:
        """Whether the key belongs to the certificate."""
        try:
            public = load_pem_private_key(self.key, password=None).public_key()
            return parse_certificate(self.certificate).public_key() == public
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return False

    @property
    def issued(self) -> datetime:
        """When the certificate was made."""
        return parse_certificate(self.certificate).not_valid_before_utc + _BACKDATE

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names and IP addresses of the certificate."""
        extensions = parse_certificate(self.certificate).extensions
        try:
            names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ()
        return tuple(str(name.value) for name in names)


def parse_certificate(pem: bytes) -> x509.Certificate:
    """Parse a certificate; ValueError if it is not valid."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except x509.InvalidVersion as exc:
        raise ValueError(str(exc)) from exc


def is_issued_by(certificate: bytes, ca: bytes) -> bool:
    """Tell whether a CA signed exactly this certificate; a changed bit is detected."""
    found = parse_certificate(certificate)
    try:
        found.verify_directly_issued_by(parse_certificate(ca))
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    # The API server also requires whole bytes in the signature, which is not checked above.
    return found.public_bytes(Encoding.DER).endswith(b"\0" + found.signature)


def issue_ca(*, now: datetime) -> KeyPair:
    """Make a self-signed certificate authority."""
    return _issue("cellgate-ca", ca=None, now=now)


def issue_serving(ca: KeyPair, *, hosts: Sequence[str], now: datetime) -> KeyPair:
    """Make a certificate for a server with the given host names and IP addresses."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    return _issue("cellgate", ca=ca, now=now, extensions=[usage, names])


def issue_client(ca: KeyPair, *, name: str, now: datetime) -> KeyPair:
    """Make a client certificate with the common name `name`."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return _issue(name, ca=ca, now=now, extensions=[usage])


def _issue(
    name: str,
    *,
    ca: KeyPair | None,
    now: datetime,
    extensions: Sequence[x509.ExtensionType] = (),
) -> KeyPair:
    """Make a certificate signed by `ca`, or a self-signed CA."""
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
        raise ValueError("the key of the CA is not an elliptic-curve key")
    return key
