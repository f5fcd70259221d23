"""Loopback ports that are free.

A port is only known to be free at the moment of asking, so a caller that starts a server must be
ready to try again with other ports (see `ControlPlane.start`). Ports are drawn at random from below
the range of outgoing connections: two test runs rarely collide, and no client takes one by chance.
"""

import random
import socket
from collections.abc import Iterator

LOOPBACK = "127.0.0.1"

_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """Return that many distinct free ports."""
    found: list[int] = []
    for port in _candidates():
        if len(found) == count:
            break
        if port not in found and is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Tell whether the port could be bound just now."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _candidates() -> Iterator[int]:
    # Every port once, in random order, so that the search ends even on a crowded machine.
    yield from random.sample(_RANGE, k=len(_RANGE))
    raise OSError(f"no free loopback port between {_RANGE.start} and {_RANGE.stop}")
