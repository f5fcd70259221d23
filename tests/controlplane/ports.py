"""Loopback ports that are free.

A port is only known to be free at the moment of asking, so a caller that starts a server must be
ready to try again with other ports (see `ControlPlane.start`). Ports are drawn at random from below
the range of outgoing connections: two test runs rarely collide, and no client takes one by chance.
The processes of one parallel run draw from shares of their own, and no process draws a port twice,
so they do not collide while a server has its port but does not listen yet.
"""

import os
import random
import socket
from collections.abc import Iterator

LOOPBACK = "127.0.0.1"

_RANGE = range(20_000, 32_000)
_SHARES = 8
_drawn: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return that many distinct free ports."""
    found: list[int] = []
    for port in _candidates():
        if len(found) == count:
            break
        if port not in _drawn and is_free(port):
            found.append(port)
            _drawn.add(port)
    return found


def share_of(worker: str) -> range:
    """The ports of one process of a parallel run, by its name: `gw0`, `gw1` and on."""
    number = int(worker.removeprefix("gw"))
    return _RANGE[number % _SHARES :: _SHARES]


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
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    ports = share_of(worker) if worker else _RANGE
    yield from random.sample(ports, k=len(ports))
    raise OSError(f"no free loopback port between {_RANGE.start} and {_RANGE.stop}")
