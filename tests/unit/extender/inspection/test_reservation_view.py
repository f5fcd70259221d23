"""A reservation as `/v1/queue`, `/v1/waiting` and explanations show it."""

from dataclasses import replace

from extender.inspection.queue.reservation_view import show_reservation
from extender.queue.reserve.model import Reservation, ReservationEnd, Slip, SlipCause
from policy.queues.pools import Pool
from policy.submission import GangKey, NodeName, VcName

OLD = GangKey("lab", "old")
SLIP = Slip(at=70.0, before=60.0, promised=120.0, cause=SlipCause.OVERRUN, gang=OLD)
ONE = Reservation(
    gang=GangKey("lab", "large"),
    pool=Pool(VcName("lab"), None),
    domain=VcName("lab"),
    priority=0,
    seats=(),
    nodes=(NodeName("n1"), NodeName("n1"), NodeName("n2")),
    made_at=0.0,
    first_promised=60.0,
    promised=120.0,
    deadline=60.0,
    waits_for=OLD,
    slips=(SLIP,),
)


def test_the_first_promise_and_each_slip_are_shown_with_their_cause() -> None:
    shown = show_reservation(ONE)["reservation"]
    assert shown["nodes"] == ["n1", "n2"]
    assert shown["firstPromisedStart"] == "1970-01-01T00:01:00Z"
    assert shown["promisedStart"] == "1970-01-01T00:02:00Z"
    assert shown["waitsFor"] == "lab/old"
    assert shown["slips"] == [
        {
            "at": "1970-01-01T00:01:10Z",
            "before": "1970-01-01T00:01:00Z",
            "promisedStart": "1970-01-01T00:02:00Z",
            "cause": "overrun",
            "gang": "lab/old",
        }
    ]
    assert shown["explanation"][1].endswith("gang lab/old runs longer than expected")


def test_a_user_who_may_read_the_own_gangs_only_sees_no_other_name() -> None:
    assert "lab/old" not in str(show_reservation(ONE, viewer="alice"))


def test_a_reservation_that_ended_says_how() -> None:
    ended = replace(ONE, end=ReservationEnd.UNUSED, ended_at=90.0)
    shown = show_reservation(ended)["reservation"]
    assert shown["end"] == "unused"
    assert shown["explanation"][0] == (
        "the reservation ended: its leaf cells are free, but the gang waits for something else"
    )
    assert show_reservation(None) == {}
