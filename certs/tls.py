"""TLS contexts for servers."""

import os
import ssl
from pathlib import Path

from certs.issuance import KeyPair
from policy.errors import SettingsError


def build_server_context(
    certificate: Path, key: Path, *, client_ca: Path | None = None
) -> ssl.SSLContext:
    """Serve with a certificate in files; `load_cert_chain` replaces it while serving.

    With `client_ca`, callers may present a client certificate of that CA. The handshake refuses a
    certificate that has expired, is of another CA or is no client certificate; it accepts a caller
    without a certificate.
    """
    context = _build_context(client_ca)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(f"cannot serve TLS with {certificate} and {key}: {exc}") from exc
    return context


def build_context_of(pair: KeyPair, *, client_ca: Path | None = None) -> ssl.SSLContext:
    """Serve with a certificate in memory; otherwise like `build_server_context`."""
    context = _build_context(client_ca)
    use_pair(context, pair)
    return context


def use_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Serve new connections with this certificate; open connections are not affected.

    `ssl` only reads files, and the key must not be written to disk: the file is in memory.
    """
    handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            file.write(pair.certificate + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    except ssl.SSLError as exc:
        raise ValueError(f"not a certificate with a matching key: {exc}") from exc
    finally:
        os.close(handle)


def _build_context(client_ca: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except (OSError, ssl.SSLError) as exc:
            raise SettingsError(f"cannot read the client CA {client_ca}: {exc}") from exc
        context.verify_mode = ssl.CERT_OPTIONAL
        # A resumed session would not be verified again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context
