"""Our own certificates: a CA, and what it signs: serving certificates and those of callers.

`issue` makes them (pure but for the clock and the random generator that cryptography needs),
`rotation` says when what is renewed, `store` keeps certificates in a directory, `tls` serves with
them, `serving` follows their changes, `clients` tells who a caller is. Keys are generated, never
shipped.

    clients   Who a caller is, by the certificate that it showed in the handshake, which …
    issue     Make a certificate authority, and certificates under it: to serve with, or to call …
    rotation  When which certificate is renewed, so that no caller ever meets one that it does …
    serving   The certificates of a running server: renewed and followed without a restart.
    store     Certificates in a directory: made when missing, renewed when they are about to …
    tls       TLS for a server of ours.
"""
