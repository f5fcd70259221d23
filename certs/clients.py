"""The identity of a caller, from the client certificate that the TLS handshake verified."""

import ssl
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SCHEDULER: Final = "cellgate-scheduler"
"""The common name of kube-scheduler's client certificate, which allows it to bind pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A caller with a client certificate."""

    name: str
    expires: datetime


def client_of(connection: ssl.SSLObject | None) -> Client | None:
    """Return the owner of the client certificate that the handshake verified, if there is one."""
    der = connection.getpeercert(binary_form=True) if connection is not None else None
    return read_client(der) if der else None


# Cached: few callers have certificates, and each sends thousands of requests.
@lru_cache(maxsize=64)
def read_client(der: bytes) -> Client | None:
    """Read a verified certificate; None unless its extended key usage includes client auth.

    The handshake accepts a certificate without extended key usage, so it is checked here.
    """
    try:
        certificate = x509.load_der_x509_certificate(der)
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (x509.ExtensionNotFound, ValueError):
        return None
    if ExtendedKeyUsageOID.CLIENT_AUTH not in usage:
        return None
    return Client(name=str(name.value), expires=certificate.not_valid_after_utc)
