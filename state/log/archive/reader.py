"""Checks a file of rows and reads it, a few rows at a time, without trust in what it contains."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Final

from policy.errors import SettingsError
from state.log.archive import lines
from state.log.archive.lines import VERSION, End, Header, OtherVersionError
from state.log.records import DecisionRecord
from state.log.stretches import Term

_LONGEST_LINE: Final = 64 * 2**20
"""Bytes of a line; the longest of ours have a ConfigMap of 1 MiB, each of its bytes escaped."""
_MOST_DAYS: Final = 1100
_MOST_TERMS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file contains, as its first pass found it."""

    header: Header
    rows: int
    days: frozenset[date]
    """The days of its rows."""
    terms: frozenset[Term]
    """The terms of its rows."""


class Archive:
    """A file of rows. It may be read several times; each row is checked each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw: IO[bytes] | None = None
        self._size = 0

    @property
    def part(self) -> float:
        """Which part of the file was read, from 0 to 1."""
        if self._raw is None or self._raw.closed:
            return 0.0
        return self._raw.tell() / self._size

    def header(self) -> Header:
        """Read the first line alone. Raises SettingsError if the file is something else."""
        with self._open() as file:
            return self._decode_header(next(self._lines(file), b""))

    def check(self, on_row: Callable[[DecisionRecord], None]) -> Iterator[Contents | None]:
        """Check the whole file: yields None now and then, and at last what the file contains.

        Raises SettingsError, in one line, if the file is something else, damaged or incomplete.
        """
        days: set[date] = set()
        terms: set[Term] = set()
        rows = 0
        for rows, record in enumerate(self.rows(), 1):
            on_row(record)
            days.add(record.at.date())
            if record.epoch is not None:
                terms.add((record.service, record.epoch))
            if len(days) > _MOST_DAYS or len(terms) > _MOST_TERMS:
                raise self._damaged("it has more days or terms than a log can have")
            if rows % 500 == 0:
                yield None
        found = frozenset(days), frozenset(terms)
        yield Contents(header=self.header(), rows=rows, days=found[0], terms=found[1])

    def rows(self) -> Iterator[DecisionRecord]:
        """Yield the rows; SettingsError where the file is damaged, at the latest at its end."""
        with self._open() as file:
            rest = self._lines(file)
            first = next(rest, b"")
            order, checksum = _Order(self._decode_header(first)), hashlib.sha256(first)
            count, end = 0, None
            for number, line in enumerate(rest, 2):
                if end is not None:
                    raise self._damaged(f"line {number} is behind its last line")
                found = self._decode(line, number)
                if isinstance(found, End):
                    end = found
                    continue
                if not order.takes(found):
                    raise self._damaged(f"line {number}: its row is not in its place")
                checksum.update(line)
                count += 1
                yield found
            if end is None:
                raise SettingsError(f"{self.path} is incomplete: it ends before its last line")
            if (end.rows, end.sha256) != (count, checksum.hexdigest()):
                raise self._damaged("its checksum does not fit its rows")

    def _decode(self, line: bytes, number: int) -> DecisionRecord | End:
        try:
            return lines.decode_line(line)
        except ValueError as exc:
            raise self._damaged(f"line {number}: {exc}") from exc

    def _decode_header(self, line: bytes) -> Header:
        try:
            return lines.decode_header(line)
        except OtherVersionError as exc:
            raise SettingsError(
                f"{self.path} is {exc} of the format, and this program reads version {VERSION}: "
                "use the release that wrote it, or a later one"
            ) from exc
        except ValueError as exc:
            raise SettingsError(
                f"{self.path} was not written by cellgate log export: {exc}"
            ) from exc

    def _lines(self, file: gzip.GzipFile) -> Iterator[bytes]:
        while line := file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise self._damaged("it has a line that is too long")
            if not line.endswith(b"\n"):
                raise SettingsError(f"{self.path} is incomplete: it ends within a line")
            yield line

    def _damaged(self, why: str) -> SettingsError:
        return SettingsError(f"{self.path} is damaged: {why}")

    @contextmanager
    def _open(self) -> Iterator[gzip.GzipFile]:
        """Open the file, and say in one line what is wrong with it."""
        try:
            if not self.path.exists():
                raise SettingsError(f"cannot read {self.path}: there is no such file")
            if not self.path.is_file():
                raise SettingsError(f"cannot read {self.path}: it is not a regular file")
            with self.path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as file:
                self._raw, self._size = raw, max(self.path.stat().st_size, 1)
                yield file
        except gzip.BadGzipFile as exc:
            raise SettingsError(
                f"{self.path} was not written by cellgate log export, or is damaged: {exc}"
            ) from exc
        except EOFError as exc:
            raise SettingsError(f"{self.path} is incomplete: it ends too early") from exc
        except zlib.error as exc:
            raise self._damaged("it cannot be decompressed") from exc
        except OSError as exc:
            raise SettingsError(f"cannot read {self.path}: {exc.strerror}") from exc


class _Order:
    """The order of the rows: epochs first, each with growing numbers, then the rest."""

    def __init__(self, header: Header) -> None:
        self._service = header.service
        self._last = {one.epoch: one.last for one in header.epochs}
        self._at = (-1, -1)
        self._is_beside = False

    def takes(self, record: DecisionRecord) -> bool:
        """Tell whether a row may be next, and go on behind it."""
        epoch, sequence = record.epoch, record.sequence
        if record.service != self._service or epoch is None or sequence is None:
            self._is_beside = True
            return True
        is_next = (epoch, sequence) > self._at and sequence <= self._last.get(epoch, -1)
        self._at = (epoch, sequence)
        return is_next and not self._is_beside
