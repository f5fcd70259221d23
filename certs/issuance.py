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
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
# Clocks of a cluster differ; a certificate must be valid on the slow ones too.
_BACKDATE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def expires(self) -> datetime:
        """The moment from which on nobody accepts the certificate."""
        return parse_certificate(self.certificate).not_valid_after_utc

    def is_valid(self, now: datetime) -> bool:
        """True when anybody accepts the certificate: it has begun, and is not over."""
        certificate = parse_certificate(self.certificate)
        return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc

    @property
    def fits(self) -> bool:
        """True when the key is the certificate's."""
        try:
            public = serialization.load_pem_private_key(self.key, password=None).public_key()
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

    def is_issued_by(self, ca: "KeyPair") -> bool:
        """True when `ca` signed this certificate."""
        return is_issued_by(self.certificate, ca.certificate)


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
    return found.public_bytes(serialization.Encoding.DER).endswith(b"\0" + found.signature)


def issue_ca(*, now: datetime) -> KeyPair:
    """Make a certificate authority that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("cellgate-ca")
    usage = _key_usage(signs=True)
    builder = (
        _builder(subject=name, issuer=name, now=now, lifetime=CA_LIFETIME)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _sealed(builder.sign(key, hashes.SHA256()), key)


def issue_serving(ca: KeyPair, *, hosts: Sequence[str], now: datetime) -> KeyPair:
    """Make a certificate for a server that is reached as any of `hosts` (names or addresses)."""
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    return _issue(ca, name="cellgate", usage=ExtendedKeyUsageOID.SERVER_AUTH, hosts=names, now=now)


def issue_client(ca: KeyPair, *, name: str, now: datetime) -> KeyPair:
    """Make a certificate by which a caller proves that it is `name`; it cannot serve."""
    return _issue(ca, name=name, usage=ExtendedKeyUsageOID.CLIENT_AUTH, now=now)


def _issue(
    ca: KeyPair,
    *,
    name: str,
    usage: x509.ObjectIdentifier,
    now: datetime,
    hosts: x509.SubjectAlternativeName | None = None,
) -> KeyPair:
    authority = x509.load_pem_x509_certificate(ca.certificate)
    authority_key = _load_key(ca.key)
    key = ec.generate_private_key(ec.SECP256R1())
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = (
        _builder(subject=_name(name), issuer=authority.subject, now=now, lifetime=LEAF_LIFETIME)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(issued_by, critical=False)
    )
    if hosts is not None:
        builder = builder.add_extension(hosts, critical=False)
    return _sealed(builder.sign(authority_key, hashes.SHA256()), key)


def _builder(
    *, subject: x509.Name, issuer: x509.Name, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - _BACKDATE)
        .not_valid_after(now.astimezone(UTC) + lifetime)
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


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the CA's key is not an elliptic-curve key")
    return key


def _sealed(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
