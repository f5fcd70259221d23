"""Writes a file of rows. It gets its name when it is complete: a failure leaves none behind."""

import gzip
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from policy.errors import SettingsError
from state.log.archive import lines
from state.log.archive.lines import End, Header
from state.log.records import DecisionRecord

_LEVEL: Final = 6


class ArchiveWriter:
    """A file that is being written."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._documents: set[str] = set()
        self.rows = 0

    def begin(self, header: Header) -> None:
        """Write the first line."""
        self._write(lines.encode_header(header))

    def append(self, record: DecisionRecord) -> None:
        """Write a row."""
        self._write(lines.encode_row(record))
        self._documents.update(document.hash for document in record.documents)
        self.rows += 1

    def has(self, hashes: Iterable[str]) -> bool:
        """Tell whether the file has all of some documents already: many rows refer to one."""
        return self._documents.issuperset(hashes)

    def end(self) -> None:
        """Write the last line."""
        self._write(lines.encode_end(End(rows=self.rows, sha256=self._hash.hexdigest())))

    def _write(self, line: bytes) -> None:
        self._hash.update(line + b"\n")
        self._file.write(line + b"\n")


@contextmanager
def open_writer(path: Path) -> Iterator[ArchiveWriter]:
    """Open a file to write; the same rows give the same bytes. SettingsError if it cannot be."""
    draft = path.parent / f".{path.name}.part"
    try:
        with (
            draft.open("wb") as raw,
            gzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=raw, mtime=0) as file,
        ):
            writer = ArchiveWriter(file)
            yield writer
            writer.end()
        draft.replace(path)
    except OSError as exc:
        raise SettingsError(f"cannot write {path}: {exc.strerror}") from exc
    finally:
        draft.unlink(missing_ok=True)
