"""TLS for a server of ours."""

import ssl
from pathlib import Path

from policy.errors import SettingsError


def build_server_context(
    certificate: Path, key: Path, *, client_ca: Path | None = None
) -> ssl.SSLContext:
    """Serve with this certificate; calling `load_cert_chain` on it again changes it on the fly.

    With `client_ca` callers may show a certificate of that CA. One that is expired, of another CA,
    or not made for calling does not get past the handshake; a caller without any does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            _ask_for_certificates(context, client_ca)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(f"cannot serve TLS with {certificate} and {key}: {exc}") from exc
    return context


def _ask_for_certificates(context: ssl.SSLContext, client_ca: Path) -> None:
    context.load_verify_locations(client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    # A resumed session would not be verified again.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
