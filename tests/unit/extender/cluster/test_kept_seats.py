"""Seats that are kept for other gangs are part of a decision's row, and of its replay."""

import pytest

from extender.cells.model import Seat
from extender.cluster.rows import decode_seat, encode_seat
from policy.topology import CellAddress, ChainName


@pytest.mark.parametrize(
    "seat",
    [
        Seat(
            chain=ChainName("rack"),
            leaves=(CellAddress("r0/n1/0/3"), CellAddress("r0/n1/1/0")),
            claim=CellAddress("r0/n1"),
        ),
        Seat(chain=ChainName("rack"), leaves=(CellAddress("r0/n1/0"),)),
        Seat(chain=ChainName("x"), leaves=(CellAddress("n1/1"), CellAddress("n1/10"))),
    ],
)
def test_a_seat_is_read_as_it_was_written(seat: Seat) -> None:
    assert decode_seat(encode_seat(seat)) == seat
