"""Candidate nodes as a difference to the known nodes, so that rows stay small. Pure.

kube-scheduler sends a list of node names with every request. A replay knows which nodes the engine
had observed by then, so a row only stores how the list differs from them. There are four forms, as
JSON:

    "all"                                 exactly the known nodes
    {"but": ["n7"]}                       all known ones except a few
    {"only": ["n1", "n2"]}                a few
    {"of": 5000, "sum": 7, "bits": "…"}   anything else: one bit per known node, in sorted order

All but the first have `"and": […]` for offered names that are not known. `of` and `sum` identify
the known nodes that the bits refer to: a decoder that knows other nodes raises an error.

Order and repetition of the names are not kept: an engine must not depend on them.

>>> known = KnownNodes(["n1", "n2", "n3"])
>>> known.encode(["n3", "n1"])
{'but': ['n2']}
>>> sorted(known.decode({"but": ["n2"]}))
['n1', 'n3']
"""

import base64
import zlib
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final

_FEW: Final = 16
_ALL: Final = "all"
_ZERO: Final = ord("0")
_ONE: Final = ord("1")
_FLAGS: Final = bytes.maketrans(b"01", b"\x00\x01")

Encoded = str | dict[str, Any]


class KnownNodes:
    """The nodes observed so far by one engine, or by one replay of it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._current_order: _Order | None = None
        self._all: frozenset[str] | None = None

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def checksum(self) -> int:
        """Identifies the known nodes, as `sum` does in bits."""
        return self._order().checksum

    def observe(self, name: str) -> None:
        """Note that a node joined; a node that is already known changes nothing."""
        if name not in self._names:
            self._names.add(name)
            self._current_order = self._all = None

    def forget(self, name: str) -> None:
        """Note that a node left."""
        if name in self._names:
            self._names.remove(name)
            self._current_order = self._all = None

    def encode(self, offered: Collection[str]) -> Encoded:
        """Encode how `offered` differs from the known nodes. About 100 µs at 5,000 nodes."""
        names = frozenset(offered)
        if len(names) == len(self._names) and names == self._names:
            return _ALL
        # Only the smaller set is built: the offered nodes, or the missing ones.
        is_most = 2 * len(names) > len(self._names)
        odd = self._names - names if is_most else self._names & names
        found_count = len(self._names) - len(odd) if is_most else len(odd)
        if len(self._names) - found_count <= min(_FEW, found_count):
            encoded: dict[str, Any] = {"but": sorted(odd if is_most else self._names - odd)}
        elif found_count <= _FEW:
            encoded = {"only": sorted(self._names & names)}
        else:
            encoded = self._encode_bits(odd, usual=_ONE if is_most else _ZERO)
        if found_count < len(names):
            encoded["and"] = sorted(names - self._names)
        return encoded

    def decode(self, encoded: object) -> frozenset[str]:
        """Return the names that were offered. Raises ValueError if they cannot be decoded."""
        if encoded == _ALL:
            if self._all is None:
                self._all = frozenset(self._names)
            return self._all
        if not isinstance(encoded, Mapping):
            raise ValueError(f"candidate nodes cannot be decoded: {encoded!r}")
        return self._decode_known(encoded) | frozenset(encoded.get("and", ()))

    def _encode_bits(self, odd: Set[str], *, usual: int) -> dict[str, Any]:
        """Encode one bit for each known node: `usual`, or the other value for odd nodes."""
        order = self._order()
        digits = bytearray([usual]) * len(order.positions)
        other = _ONE + _ZERO - usual
        for name in odd:
            digits[order.positions[name]] = other
        plain = int(digits, 2).to_bytes((len(digits) + 7) // 8)
        bits = base64.b85encode(zlib.compress(plain, 1)).decode()
        return {"of": len(digits), "sum": order.checksum, "bits": bits}

    def _decode_known(self, encoded: Mapping[str, Any]) -> frozenset[str]:
        match encoded:
            case {"but": missing}:
                return frozenset(self._names.difference(missing))
            case {"only": names}:
                return frozenset(names)
            case {"of": count, "sum": checksum, "bits": bits}:
                order = self._order()
                if (count, checksum) != (len(order.positions), order.checksum):
                    raise ValueError(
                        f"candidate nodes refer to {count} other nodes than the {len(self)} known "
                        "ones: an observation is missing before this row"
                    )
                return frozenset(compress(order.positions, _unpack(bits, count)))
        raise ValueError(f"candidate nodes cannot be decoded: {sorted(encoded)}")

    def _order(self) -> "_Order":
        """Return the sorted names, computed again only after a node joined or left."""
        if self._current_order is None:
            names = sorted(self._names)
            text = "\0".join(names).encode(errors="surrogatepass")
            positions = {name: position for position, name in enumerate(names)}
            self._current_order = _Order(positions=positions, checksum=zlib.crc32(text))
        return self._current_order


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """The position of each name in sorted order, and a checksum of the names."""

    positions: Mapping[str, int]
    checksum: int


def _unpack(text: str, count: int) -> bytes:
    """Return a byte for each known node: 1 if it was offered, else 0."""
    try:
        # Bounded, because a damaged row may promise more than fits into memory.
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(base64.b85decode(text), count // 8 + 2)
    except zlib.error as exc:
        raise ValueError("candidate nodes are damaged") from exc
    if not unpacker.eof:
        raise ValueError("candidate nodes are damaged")
    digits = f"{int.from_bytes(plain):0{count}b}"
    if len(digits) != count:
        raise ValueError("candidate nodes are damaged")
    return digits.encode().translate(_FLAGS)
