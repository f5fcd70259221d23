"""Settings that every service has, checked when they are read."""

import errno
import ipaddress
import re
from dataclasses import dataclass, field

from policy.errors import SettingsError

_PORT = re.compile("[0-9]{1,5}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """An address to listen on. Port 0 means any free port."""

    host: str
    port: int
    flag: str = field(default="", compare=False)
    """The flag that it was given with, for messages."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def cannot_listen(address: Address, error: OSError) -> SettingsError:
    """Explain in one line why an address is not available, and what to do."""
    other = f"choose another address with {address.flag}" if address.flag else "choose another"
    if error.errno == errno.EADDRINUSE:
        why = f"another process listens there; stop it, or {other}"
    elif error.errno == errno.EACCES:
        why = "no permission; choose a port above 1023"
    else:
        why = f"this machine has no such address; {other}"
    return SettingsError(f"cannot listen on {address}: {why}")


def parse_address(text: str, *, flag: str = "") -> Address:
    """Parse `HOST:PORT`, with brackets around an IPv6 host."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (separator and host and _PORT.fullmatch(port) and int(port) <= 65535):
        raise SettingsError(f"{text!r} is not an address; write HOST:PORT, such as 127.0.0.1:9096")
    return Address(host=host, port=int(port), flag=flag)
