"""Files that are damaged, incomplete, hostile, or something else: one line says so."""

import gzip
import hashlib
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from policy.errors import SettingsError
from state.log.archive import reader
from state.log.archive.lines import Header
from state.log.archive.reader import Archive
from state.log.archive.writer import open_writer
from state.log.records import DecisionRecord
from state.log.stretches import EpochStretch
from tests.support.state.histories import NOON
from tests.support.state.records import a_decision


def _row(number: int, epoch: int = 5) -> DecisionRecord:
    return a_decision("n1", service="extender", epoch=epoch, sequence=number)


def _stretch(epoch: int, last: int) -> EpochStretch:
    return EpochStretch(epoch=epoch, first=1, last=last, began_at=NOON)


HEADER = Header(service="extender", epochs=(_stretch(5, 3), _stretch(6, 1)))
ROWS = [_row(1), _row(2), _row(3), _row(1, epoch=6), a_decision(), a_decision()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with open_writer(tmp_path / "log") as writer:
        writer.begin(HEADER)
        for row in ROWS:
            writer.append(row)
    return tmp_path / "log"


def _told(path: Path) -> str:
    """Read the whole file; returns why it is refused."""
    with pytest.raises(SettingsError) as refused:
        list(Archive(path).check(lambda _: None))
    told = str(refused.value)
    assert "\n" not in told
    assert told.startswith((str(path), f"cannot read {path}"))
    return told.removeprefix(str(path)).strip()


def _lines(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def _write(path: Path, lines: list[bytes]) -> None:
    """Write lines with a checksum that fits: only what they say is wrong."""
    body = b"".join(line + b"\n" for line in lines)
    end = {"end": True, "rows": len(lines) - 1, "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(gzip.compress(body + orjson.dumps(end) + b"\n"))


def test_a_file_is_read_as_it_was_written(path: Path) -> None:
    assert [*Archive(path).rows()] == ROWS
    *_, found = Archive(path).check(lambda _: None)
    assert found is not None
    assert (found.header.epochs, found.rows) == (HEADER.epochs, 6)
    assert found.terms == {("extender", 5), ("extender", 6)}
    assert found.days == {NOON.date()}


def test_a_file_is_read_again_and_says_how_far_it_is(path: Path) -> None:
    archive = Archive(path)
    for _ in range(2):
        assert archive.part == 0
        rows = archive.rows()
        next(rows)
        assert 0 < archive.part <= 1
        list(rows)


def test_a_file_that_was_written_in_part_is_not_there(tmp_path: Path) -> None:
    def fail() -> None:
        with open_writer(tmp_path / "log") as writer:
            writer.begin(HEADER)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [*tmp_path.iterdir()] == []


def test_a_place_where_no_file_can_be_written_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingsError, match=r"cannot write .*/missing/log: No such file"),
        open_writer(tmp_path / "missing" / "log"),
    ):
        raise AssertionError


def test_other_things_than_files_are_told(tmp_path: Path) -> None:
    assert _told(tmp_path / "none").endswith("there is no such file")
    assert _told(tmp_path).endswith("it is not a regular file")
    os.mkfifo(tmp_path / "pipe")
    assert _told(tmp_path / "pipe").endswith("it is not a regular file")
    (tmp_path / "empty").touch()
    assert _told(tmp_path / "empty").startswith("was not written by cellgate log export")
    (tmp_path / "text").write_text("hello")
    assert _told(tmp_path / "text").startswith("was not written by cellgate log export")


@pytest.mark.parametrize("content", [b"", b"\n", b"hello\n", b"[]\n", b"{}\n", b'{"format": 1}\n'])
def test_other_compressed_files_are_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(gzip.compress(content))
    assert _told(tmp_path / "log").startswith("was not written by cellgate log export: ")


def test_another_version_is_told(path: Path) -> None:
    first, *rest = _lines(path)
    _write(path, [first.replace(b'"version":1', b'"version":2'), *rest[:-1]])
    assert _told(path).startswith("is version 2 of the format, and this program reads version 1")


def test_a_file_that_ends_anywhere_is_incomplete(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert _told(path)
    text = gzip.decompress(whole)
    ends = [index for index, byte in enumerate(text) if byte == ord("\n")]
    for length in range(ends[0] + 1, len(text) - 1, 7):
        path.write_bytes(gzip.compress(text[:length], 1))
        assert _told(path).startswith("is incomplete: ")


def test_no_changed_byte_gets_through(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    dice = random.Random(3)
    for _ in range(300):
        changed = bytearray(text)
        changed[dice.randrange(len(text))] ^= 1 << dice.randrange(8)
        path.write_bytes(gzip.compress(bytes(changed), 1))
        try:
            rows = [*Archive(path).rows()]
        except SettingsError:
            continue
        assert rows == ROWS, "such as a changed letter of a number in the last line"


def test_random_bytes_of_a_compressed_file_are_told(path: Path) -> None:
    whole = path.read_bytes()
    dice = random.Random(5)
    for _ in range(300):
        changed = bytearray(whole)
        changed[dice.randrange(10, len(whole))] = dice.randrange(256)
        path.write_bytes(bytes(changed))
        try:
            assert [*Archive(path).rows()] == ROWS
        except SettingsError:
            continue


def test_what_follows_the_last_line_is_damage(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + gzip.compress(b"{}\n"))
    assert _told(path) == "is damaged: line 9 is behind its last line"
    path.write_bytes(whole + b"more")
    assert "is damaged" in _told(path)


def _changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        row.update(changes)

    return change


BAD_ROWS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "key": (_changed(key="x"), "key is not a UUID"),
    "no key": (lambda row: row.pop("key"), "key is not a UUID"),
    "at": (_changed(at="yesterday"), "at is not a time"),
    "at without zone": (_changed(at="2026-03-01T12:00:00"), "at has no time zone"),
    "at beyond time": (_changed(at="9999-12-31T23:59:59-14:00"), "at is not a time"),
    "subject": (_changed(subject=5), "subject is not a text"),
    "pod": (_changed(pod_uid=[]), "pod_uid is not a text"),
    "latency": (_changed(latency_seconds="1"), "latency_seconds is not a number"),
    "epoch": (_changed(epoch="5"), "epoch is not a number of a row"),
    "huge epoch": (_changed(epoch=2**63), "epoch is not a number of a row"),
    "negative": (_changed(sequence=-1), "sequence is not a number of a row"),
    "truth": (_changed(sequence=True), "sequence is not a number of a row"),
    "inputs": (_changed(inputs=[]), "inputs is not a JSON object"),
    "details": (_changed(details=None), "details is not a JSON object"),
    "documents": (_changed(documents={}), "documents is not a list"),
    "document": (_changed(documents=[1]), "a document is not a JSON object"),
    "content": (_changed(documents=[{"kind": "x"}]), "content is not a text"),
    "order": (_changed(sequence=3), "its row is not in its place"),
    "other epoch": (_changed(epoch=4), "its row is not in its place"),
    "beyond the header": (_changed(epoch=6, sequence=2), "its row is not in its place"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_row_that_no_log_has_is_damage(path: Path, name: str) -> None:
    change, why = BAD_ROWS[name]
    lines = _lines(path)[:-1]
    row = orjson.loads(lines[2])
    change(row)
    lines[2] = orjson.dumps(row)
    _write(path, lines)
    told = _told(path)
    assert told.startswith("is damaged: line "), told
    assert told.endswith(why)


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"5", b"{", b"[" * 5000, b'{"key": ' * 5000, b"\xff", b'{"end": 1}']
)
def test_a_line_that_is_no_row_is_damage(path: Path, line: bytes) -> None:
    lines = _lines(path)[:-1]
    lines[2] = line
    _write(path, lines)
    assert _told(path).startswith("is damaged: line 3: ")


def test_a_line_without_end_takes_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_LONGEST_LINE", 10_000)
    lines = _lines(path)[:-1]
    lines[2] = b'"' + b"x" * 10_000_000
    _write(path, lines)
    assert _told(path) == "is damaged: it has a line that is too long"


def test_a_file_with_more_days_than_a_log_can_have_is_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MOST_DAYS", 0)
    assert _told(path) == "is damaged: it has more days or terms than a log can have"


@pytest.mark.parametrize("epochs", [{}, [1], [{"epoch": 5}], [{"epoch": "x", "last": 3}]])
def test_a_header_that_no_program_writes_is_told(path: Path, epochs: Any) -> None:
    first, *rest = _lines(path)[:-1]
    _write(path, [orjson.dumps({**orjson.loads(first), "epochs": epochs}), *rest])
    assert _told(path).startswith("was not written by cellgate log export: ")
