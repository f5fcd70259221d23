"""What owners read about their reservations."""

from extender.queue.reserve.model import Slip, SlipCause
from extender.queue.reserve.sentences import slip_sentence
from policy.submission import NodeName


def _slip(*, before: float, promised: float) -> Slip:
    return Slip(
        at=0.0,
        before=before,
        promised=promised,
        cause=SlipCause.CELLS_LOST,
        gang=None,
        nodes=(NodeName("n1"),),
    )


def test_a_later_start_is_put_off() -> None:
    told = slip_sentence(_slip(before=1, promised=2), str)
    assert told == (
        "the promised start was put off from 1 to 2: reserved leaf cells on 1 node (n1) "
        "can no longer be used"
    )


def test_a_start_that_stays_is_not_said_to_be_put_off() -> None:
    told = slip_sentence(_slip(before=2, promised=2), str)
    assert told == (
        "other leaf cells are reserved, and the start is promised for 2: reserved leaf cells on "
        "1 node (n1) can no longer be used"
    )
