"""TLS for a server of ours."""

import os
import ssl
from pathlib import Path

from certs.issuance import KeyPair
from policy.errors import SettingsError


def build_server_context(
    certificate: Path, key: Path, *, client_ca: Path | None = None
) -> ssl.SSLContext:
    """Serve with this certificate; calling `load_cert_chain` on it again changes it on the fly.

    With `client_ca` callers may show a certificate of that CA. One that is expired, of another CA,
    or not made for calling does not get past the handshake; a caller without any does.
    """
    context = _empty_context()
    try:
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            _ask_for_certificates(context, client_ca)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(f"cannot serve TLS with {certificate} and {key}: {exc}") from exc
    return context


def build_context_of(pair: KeyPair, *, client_ca: Path | None = None) -> ssl.SSLContext:
    """Do the same with a certificate that is in memory."""
    context = _empty_context()
    use_pair(context, pair)
    if client_ca is not None:
        try:
            _ask_for_certificates(context, client_ca)
        except (OSError, ssl.SSLError) as exc:
            raise SettingsError(f"cannot know callers by {client_ca}: {exc}") from exc
    return context


def use_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Serve new callers with this certificate; those that are connected notice nothing.

    `ssl` reads files only, and a key should be on no disk: this one is in memory.
    """
    handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(handle), "wb") as file:
            file.write(pair.certificate + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    except ssl.SSLError as exc:
        raise ValueError(f"not a certificate with its key: {exc}") from exc
    finally:
        os.close(handle)


def _empty_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _ask_for_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
    context.load_verify_locations(client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    # A resumed session would not be verified again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
