"""Progress on standard error: nothing for short work, one line that changes on a terminal."""

import io
import time

import pytest

from cli.log.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def _work(output: io.StringIO, clock: list[float], *, seconds: int) -> str:
    show = Progress(output)
    for second in range(seconds + 1):
        clock[0] = float(second)
        show("replaying epoch 5", second / 100)
    show.clear()
    return output.getvalue()


def test_short_work_is_silent(clock: list[float]) -> None:
    assert _work(io.StringIO(), clock, seconds=2) == ""


def test_a_terminal_has_one_line_that_is_removed_at_the_end(clock: list[float]) -> None:
    told = _work(Terminal(), clock, seconds=5)
    assert told.startswith("\rreplaying epoch 5: 3%\rreplaying epoch 5: 4%\rreplaying epoch 5: 5%")
    assert "\n" not in told
    assert told.endswith(" \r")


def test_a_file_gets_a_line_now_and_then(clock: list[float]) -> None:
    told = _work(io.StringIO(), clock, seconds=25)
    assert told.splitlines() == [f"replaying epoch 5: {part}%" for part in (3, 13, 23)]
