"""The identity of a caller, from its client certificate."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from certs.clients import Client, read_client
from certs.issuance import KeyPair, issue_ca, issue_client, issue_serving

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def _der(pair: KeyPair) -> bytes:
    return x509.load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)


def test_a_client_has_a_name_and_an_end() -> None:
    pair = issue_client(issue_ca(now=NOW), name="cellgate-scheduler", now=NOW)
    expected = Client(name="cellgate-scheduler", expires=NOW + timedelta(days=365))
    assert read_client(_der(pair)) == expected


def test_a_serving_certificate_and_a_ca_are_no_clients() -> None:
    ca = issue_ca(now=NOW)
    assert read_client(_der(issue_serving(ca, hosts=["cellgate-scheduler"], now=NOW))) is None
    assert read_client(_der(ca)) is None


def test_a_certificate_that_does_not_say_what_it_is_for_is_no_client() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cellgate-scheduler")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    assert read_client(certificate.public_bytes(Encoding.DER)) is None


def test_garbage_is_no_client() -> None:
    assert read_client(b"garbage") is None
