"""The keys of a throw-away control plane: a CA, the API server's certificate, one signing key.

Valid for days, never used again, all on the elliptic curve P-256 because it is made in no time.
"""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.controlplane.ports import LOOPBACK

CA_CERTIFICATE = "ca.crt"
SERVER_CERTIFICATE = "apiserver.crt"
SERVER_KEY = "apiserver.key"
SERVICE_ACCOUNT_KEY = "service-account.key"
SERVICE_ACCOUNT_PUBLIC_KEY = "service-account.pub"

_LIFETIME = datetime.timedelta(days=2)
_CLOCK_SKEW = datetime.timedelta(minutes=5)
# Key usage and key identifiers are spelled out because Python 3.13 verifies strictly.
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def save_certificates(directory: Path) -> None:
    """Write the files named above into that folder."""
    ca_key, server_key, account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca = _build_ca(ca_key)
    server = _build_server_certificate(server_key.public_key(), ca, ca_key)
    contents = {
        CA_CERTIFICATE: ca.public_bytes(Encoding.PEM),
        SERVER_CERTIFICATE: server.public_bytes(Encoding.PEM),
        SERVER_KEY: _pem(server_key),
        SERVICE_ACCOUNT_KEY: _pem(account_key),
        SERVICE_ACCOUNT_PUBLIC_KEY: account_key.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        ),
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)


def _build_ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _common_name("test control plane CA")
    own_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        _new_certificate(subject=name, issuer=name, key=key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .add_extension(own_key, critical=False)
        .sign(key, hashes.SHA256())
    )


def _build_server_certificate(
    key: ec.EllipticCurvePublicKey, ca: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _new_certificate(subject=_common_name("kube-apiserver"), issuer=ca.subject, key=key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage, critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _new_certificate(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFETIME)
    )


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
