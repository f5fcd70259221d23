"""Settings that every service shares, checked when they are read."""

from dataclasses import dataclass

from policy.errors import SettingsError

_LOOPBACK_HOSTS = ("localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen. Port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True when only this machine can reach it."""
        return self.host in _LOOPBACK_HOSTS or self.host.startswith("127.")


def parse_address(text: str) -> Address:
    """Parse `HOST:PORT`, with brackets around an IPv6 host."""
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (separator and host and port.isdecimal() and int(port) <= 65535):
        raise SettingsError(f"{text!r} is not an address; write HOST:PORT, such as 127.0.0.1:9096")
    return Address(host=host, port=int(port))
