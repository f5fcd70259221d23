"""What is in memory only survives the process: as far as there is room, whole and in order."""

from collections import deque
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from state.log.log import DecisionLog
from state.log.spool.mirror import Mirror, open_mirror
from state.log.spool.spool import Spool
from tests.support.state.records import a_decision
from tests.support.twins.log import MemoryDecisions


def test_what_was_not_released_is_left_to_the_next_process(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "mirror")
    for payload in (b"one", b"two", b"three"):
        mirror.append(payload)
    mirror.remove(1)
    assert Mirror(tmp_path / "mirror").left == [b"two", b"three"]
    mirror.clear()
    assert Mirror(tmp_path / "mirror").left == []


@given(
    steps=st.lists(st.one_of(st.binary(min_size=1, max_size=30), st.integers(1, 5)), max_size=60)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_history_the_newest_that_fit_are_there(
    steps: list[bytes | int], tmp_path: Path
) -> None:
    path = tmp_path / "mirror"
    path.unlink(missing_ok=True)
    mirror, kept = Mirror(path, capacity_bytes=100), deque[bytes]()
    for step in steps:
        if isinstance(step, bytes):
            mirror.append(step)
            # 8 bytes for the frame of each; what finds no room takes a place all the same.
            has_room = sum(len(one) + 8 for one in kept if one) + len(step) + 8 <= 100
            kept.append(step if has_room else b"")
        else:
            mirror.remove(min(step, len(kept)))
            for _ in range(min(step, len(kept))):
                kept.popleft()
    assert Mirror(path, capacity_bytes=100).left == [one for one in kept if one]
    mirror.close()


def test_a_file_of_something_else_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "mirror").write_bytes(b"\xff" * 5000)
    mirror = Mirror(tmp_path / "mirror", capacity_bytes=100)
    assert mirror.left == []
    mirror.clear()
    mirror.append(b"one")
    assert Mirror(tmp_path / "mirror").left == [b"one"]


def test_without_room_on_disk_there_is_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert open_mirror(tmp_path / "nowhere") is None
    assert "no mirror: decisions in memory are lost" in caplog.text


async def test_the_next_process_writes_what_a_killed_one_had_in_memory(tmp_path: Path) -> None:
    store = MemoryDecisions()
    records = [a_decision(f"team-a/gang-{number}") for number in range(5)]
    spool = Spool(tmp_path)
    killed = DecisionLog(store, spool=spool, mirror=open_mirror(tmp_path))
    for record in records[:2]:
        killed.append(record)
    await killed.flush()
    for record in records[2:]:
        killed.append(record)
    spool.close()

    spool = Spool(tmp_path)
    heir = DecisionLog(store, spool=spool, mirror=open_mirror(tmp_path))
    assert (heir.lost, heir.pending) == (0, 3)
    await heir.flush()
    assert store.records == records
    spool.close()
    assert Mirror(tmp_path / "mirror").left == []


async def test_what_can_never_be_stored_takes_its_place(tmp_path: Path) -> None:
    store = MemoryDecisions()
    spool = Spool(tmp_path)
    killed = DecisionLog(store, spool=spool, mirror=open_mirror(tmp_path))
    endless: dict[str, object] = {}
    endless["itself"] = [endless]
    killed.append(a_decision("team-a/bad", details=endless))
    killed.append(a_decision("team-a/good"))
    spool.close()
    spool = Spool(tmp_path)
    heir = DecisionLog(store, spool=spool, mirror=open_mirror(tmp_path))
    await heir.flush()
    assert [record.subject for record in store.records] == ["team-a/good"]
    assert heir.lost == 1
    spool.close()
