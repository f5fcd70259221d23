"""Our own certificates: a CA and the serving certificates it signs.

`issue` makes them (pure but for the clock and the random generator that cryptography needs),
`store` keeps them in a directory, `tls` serves with them. Keys are generated, never shipped.
"""
