"""The spool: in order, bounded, and whole after a death in the middle of anything."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from policy.errors import SettingsError
from state.log.spool.frames import frame, read_frames
from state.log.spool.spool import Spool, SpoolSettings

_SMALL = SpoolSettings(segment_bytes=100, capacity_bytes=1000)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    spool = Spool(tmp_path / "spool", _SMALL)
    yield spool
    spool.close()


def _payloads(count: int) -> list[bytes]:
    return [f"payload {number:02}".encode() for number in range(count)]


def _take_all(spool: Spool, *, limit: int = 3) -> list[bytes]:
    taken: list[bytes] = []
    while found := spool.peek(limit):
        taken += found
        spool.take(len(found))
    return taken


def test_payloads_come_back_in_order_across_segments(spool: Spool) -> None:
    for payload in _payloads(20):
        assert spool.append([payload]) == 1
    assert len(list(spool.directory.glob("*.spool"))) > 1
    assert spool.count == 20
    assert _take_all(spool) == _payloads(20)
    assert (spool.count, spool.byte_count) == (0, 0)
    assert list(spool.directory.glob("*.spool")) == []


def test_appending_goes_on_while_it_is_read(spool: Spool) -> None:
    spool.append(_payloads(3))
    assert spool.peek(2) == _payloads(2)
    spool.append([b"later"])
    spool.take(2)
    assert _take_all(spool) == [_payloads(3)[2], b"later"]


def test_it_takes_what_fits_and_no_more(spool: Spool) -> None:
    payloads = _payloads(100)
    kept = spool.append(payloads)
    assert 0 < kept < 100
    assert spool.byte_count <= _SMALL.capacity_bytes
    assert spool.append([b"payload no"]) == 0
    assert _take_all(spool, limit=1000) == payloads[:kept]
    assert spool.append([b"room again"]) == 1


def test_what_was_not_taken_is_there_after_a_restart(tmp_path: Path) -> None:
    first = Spool(tmp_path, _SMALL)
    first.append(_payloads(20))
    first.peek(3)
    first.take(3)
    first.close()
    second = Spool(tmp_path, _SMALL)
    # A segment is read from its start again: the reader skips them by their key.
    assert _take_all(second)[-17:] == _payloads(20)[-17:]
    second.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_torn_end_costs_what_was_being_written_and_no_more(
    tmp_path: Path, data: st.DataObject
) -> None:
    directory = tmp_path / os.urandom(4).hex()
    first = Spool(directory)
    payloads = data.draw(st.lists(st.binary(max_size=30), min_size=1, max_size=10))
    first.append(payloads)
    first.close()
    [path] = directory.glob("*.spool")
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    junk = data.draw(st.sampled_from([b"", b"\0" * 20, b"\xff" * 9]))
    assume(whole[cut : cut + 1] != junk[:1])  # else what was torn off might be written after all
    path.write_bytes(whole[:cut] + junk)
    second = Spool(directory)
    survived = [found.payload for found in read_frames(whole[:cut])]
    assert _take_all(second) == survived
    assert second.torn in (0, 1)
    second.append([b"after"])
    assert _take_all(second) == [b"after"]
    second.close()


def test_a_torn_end_is_counted(tmp_path: Path) -> None:
    Spool(tmp_path).close()
    (tmp_path / "0000000001.spool").write_bytes(frame(b"whole") + frame(b"torn")[:-1])
    spool = Spool(tmp_path)
    assert (spool.torn, _take_all(spool)) == (1, [b"whole"])
    spool.close()


def test_a_payload_larger_than_what_is_read_at_once_comes_back(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    large = os.urandom(3 * 2**20)
    spool.append([b"small", large, b"last"])
    assert _take_all(spool) == [b"small", large, b"last"]
    spool.close()


def test_a_directory_in_use_is_refused(spool: Spool) -> None:
    with pytest.raises(SettingsError, match="in use by another process"):
        Spool(spool.directory)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot use the spool directory"):
        Spool(tmp_path / "file" / "spool")


def test_a_disk_that_fails_leaves_nothing_half_written(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([b"before"])
    write = os.write

    def fail_midway(handle: int, data: bytes) -> int:
        if len(data) > 5:
            return write(handle, bytes(data[:5]))
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail_midway)
        with pytest.raises(OSError, match="No space left"):
            spool.append([b"0123456789"])
    assert spool.count == 1
    spool.append([b"after"])
    assert _take_all(spool) == [b"before", b"after"]


def test_a_damaged_payload_costs_no_other(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    first.append(_payloads(3))
    first.close()
    [path] = tmp_path.glob("*.spool")
    path.write_bytes(path.read_bytes().replace(b"payload 01", b"payloXd 01"))
    second = Spool(tmp_path)
    assert (second.count, second.torn) == (3, 0)
    assert _take_all(second) == [b"payload 00", b"", b"payload 02"]
    second.close()


def test_damage_in_the_middle_of_the_spool_is_counted(tmp_path: Path) -> None:
    first = Spool(tmp_path, _SMALL)
    for payload in _payloads(10):
        first.append([payload])
    first.close()
    paths = sorted(tmp_path.glob("*.spool"))
    os.truncate(paths[0], 30)
    second = Spool(tmp_path, _SMALL)
    assert (second.torn, second.unreadable) == (1, 1)
    assert _take_all(second)[-1] == b"payload 09"
    second.close()


@pytest.mark.parametrize("harm", ["cut", "deleted", "unreadable"])
def test_a_file_that_cannot_be_read_any_more_is_counted_and_passed_over(
    spool: Spool, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for payload in _payloads(10):
        spool.append([payload])
    spool.take(len(spool.peek(2)))
    first = min(spool.directory.glob("*.spool"))
    if harm == "cut":
        os.truncate(first, 0)
    elif harm == "deleted":
        first.unlink()
    else:
        first.unlink()
        first.mkdir()  # even root cannot read it
    rest = _take_all(spool)
    assert rest[-1] == b"payload 09"
    assert (spool.count, spool.byte_count) == (0, 0)
    assert 2 + len(rest) + spool.unreadable == 10
    assert spool.append([b"after"]) == 1
    assert _take_all(spool) == [b"after"]


def test_a_file_that_cannot_be_deleted_does_not_block_others(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, *, missing_ok: bool = False) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", fail)
    for number in range(3):
        spool.append([b"%d" % number])
        assert _take_all(spool) == [b"%d" % number]


def test_a_disk_that_fails_between_making_a_file_and_writing_it_is_tried_again(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                spool.append([b"lost"])
    assert spool.count == 0
    for payload in _payloads(10):
        spool.append([payload])
    assert _take_all(spool) == _payloads(10)


def test_what_else_lies_in_the_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.spool").write_text("mine")
    spool = Spool(tmp_path)
    assert spool.count == 0
    spool.close()
    assert (tmp_path / "notes.spool").read_text() == "mine"


def test_a_spool_that_cannot_be_opened_is_refused_and_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", fail)
        with pytest.raises(
            SettingsError, match=r"cannot use the spool directory .*: No space left"
        ):
            Spool(tmp_path)
    Spool(tmp_path).close()


def test_the_meter_tells_the_next_process_what_was_lost(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    assert first.loss_counter.lost == 0
    first.loss_counter.set(appended=10, acknowledged=7)
    first.close()  # a kill -9 leaves the same behind: the kernel has the page
    second = Spool(tmp_path)
    assert second.loss_counter.lost == 3
    second.close()
