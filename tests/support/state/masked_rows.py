"""Every row that the product writes in a test is masked, too: a field that is new must be declared.

Rows that tests write themselves are not looked at.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from cli.log.mask.masker import Masker
from cli.log.mask.names import Collected
from state.log.log import DecisionLog
from state.log.records import DecisionRecord

_PRODUCT = ("extender", "webhook")
_FRAMES = 5


@contextmanager
def masking_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Mask each row that services append; fail if anything is not declared."""
    append, masker = DecisionLog.append, Masker(Collected())

    def masking(log: DecisionLog, record: DecisionRecord) -> None:
        append(log, record)
        if _is_of_product():
            masker.mask(record)

    monkeypatch.setattr(DecisionLog, "append", masking)
    yield
    assert masker.now.left_out == {}, "declare it in cli.log.mask.row_kinds"


def _is_of_product() -> bool:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_FRAMES):
        if frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _PRODUCT:
            return True
        frame = None if frame is None else frame.f_back
    return False
