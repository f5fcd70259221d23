"""Candidate nodes as a difference to the known ones: a row stays small at 5,000 nodes. Pure.

kube-scheduler offers a list of names with every question. A replay knows which nodes the engine had
been told of by then, so a row needs only say how the list differs. Four forms, as JSON:

    "all"                                 exactly the known nodes
    {"but": ["n7"]}                       all known ones except a few
    {"only": ["n1", "n2"]}                a few
    {"of": 5000, "sum": 7, "bits": "…"}   anything else: one bit per known node, in sorted order

each but the first with `"and": […]`, offered names that are not known, if there are any. `of` and
`sum` say which known nodes the bits mean: a decoder that knows others refuses instead of guessing.

The order and repetition of names are not kept: an engine must not depend on them.

>>> known = KnownNodes(["n1", "n2", "n3"])
>>> known.encode(["n3", "n1"])
{'but': ['n2']}
>>> sorted(known.decode({"but": ["n2"]}))
['n1', 'n3']
"""

import base64
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

_FEW: Final = 16
_ALL: Final = "all"

Encoded = str | dict[str, Any]


class KnownNodes:
    """The nodes observed so far. One instance follows one engine, or one replay of it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._sorted: Sequence[str] | None = None
        self._sum = 0

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def observe(self, name: str) -> None:
        """Take note of a node that joined; one that only changed makes no difference."""
        if name not in self._names:
            self._names.add(name)
            self._sorted = None

    def forget(self, name: str) -> None:
        """Take note of a node that left."""
        if name in self._names:
            self._names.remove(name)
            self._sorted = None

    def encode(self, offered: Collection[str]) -> Encoded:
        """Say how `offered` differs from what is known. Some 100 µs at 5,000 nodes."""
        names = offered if isinstance(offered, set | frozenset) else frozenset(offered)
        missing = self._names - names
        known_count = len(self._names) - len(missing)
        unknown = names - self._names if known_count < len(names) else frozenset[str]()
        if not missing and not unknown:
            return _ALL
        encoded = self._encode_known(names, missing, known_count)
        return {**encoded, "and": sorted(unknown)} if unknown else encoded

    def decode(self, encoded: object) -> frozenset[str]:
        """Return the names that were offered. Raises ValueError if they cannot be told."""
        if encoded == _ALL:
            return frozenset(self._names)
        if not isinstance(encoded, Mapping):
            raise ValueError(f"candidate nodes are not understood: {encoded!r}")
        return self._decode_known(encoded) | frozenset(encoded.get("and", ()))

    def _encode_known(
        self, names: Collection[str], missing: Collection[str], known_count: int
    ) -> dict[str, Any]:
        """Choose the form: names where a person may want to read them, bits where they are many."""
        if len(missing) <= min(_FEW, known_count):
            return {"but": sorted(missing)}
        if known_count <= _FEW:
            return {"only": sorted(name for name in names if name in self._names)}
        ordered = self._order()
        bits = _pack([name not in missing for name in ordered])
        return {"of": len(ordered), "sum": self._sum, "bits": bits}

    def _decode_known(self, encoded: Mapping[str, Any]) -> frozenset[str]:
        match encoded:
            case {"but": missing}:
                return frozenset(self._names.difference(missing))
            case {"only": names}:
                return frozenset(names)
            case {"of": count, "sum": checksum, "bits": bits}:
                ordered = self._order()
                if (count, checksum) != (len(ordered), self._sum):
                    raise ValueError(
                        f"candidate nodes refer to {count} other nodes than the {len(ordered)} "
                        "that are known: an observation is missing before this row"
                    )
                flags = _unpack(bits, count)
                pairs = zip(ordered, flags, strict=True)
                return frozenset(name for name, is_offered in pairs if is_offered)
        raise ValueError(f"candidate nodes are not understood: {sorted(encoded)}")

    def _order(self) -> Sequence[str]:
        """The known names, sorted; costs something only after a node joined or left."""
        if self._sorted is None:
            self._sorted = sorted(self._names)
            self._sum = zlib.crc32("\0".join(self._sorted).encode(errors="surrogatepass"))
        return self._sorted


def _pack(flags: Sequence[bool]) -> str:
    digits = "".join("1" if flag else "0" for flag in flags)
    plain = int(digits, 2).to_bytes((len(flags) + 7) // 8)
    return base64.b85encode(zlib.compress(plain, 1)).decode()


def _unpack(text: str, count: int) -> list[bool]:
    try:
        plain = zlib.decompress(base64.b85decode(text))
    except zlib.error as exc:
        raise ValueError("candidate nodes are damaged") from exc
    digits = f"{int.from_bytes(plain):0{count}b}"
    if len(digits) != count:
        raise ValueError("candidate nodes are damaged")
    return [digit == "1" for digit in digits]
