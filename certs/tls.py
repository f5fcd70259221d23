"""TLS for a server of ours."""

import ssl
from pathlib import Path

from policy.errors import SettingsError


def build_server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Serve with this certificate; calling `load_cert_chain` on it again changes it on the fly."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as exc:
        raise SettingsError(f"cannot serve TLS with {certificate} and {key}: {exc}") from exc
    return context
