"""Our own certificates: a CA, and what it signs: serving certificates and those of callers.

`issue` makes them (pure but for the clock and the random generator that cryptography needs),
`rotation` says when what is renewed, `store` keeps certificates in a directory, `tls` serves with
them, `serving` follows their changes, `clients` tells who a caller is. Keys are generated, never
shipped.
"""
