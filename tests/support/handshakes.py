"""TLS handshakes in memory."""

import ssl


def shake_hands(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Let the two talk until both are content; the server's end, and the client's."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=host),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends
