"""Who may go from release to binding."""

from extender.queue.in_flight import InFlightPods
from policy.submission import GangKey, PodUid


def _gang(number: int) -> GangKey:
    return GangKey("ns", f"gang{number:02}")


def _pods(number: int) -> list[PodUid]:
    return [PodUid(f"gang{number:02}-{index}") for index in range(4)]


def _full_flight() -> InFlightPods:
    """As many gangs of four as the way takes."""
    way = InFlightPods()
    for number in range(24):
        assert way.admits(_gang(number), _pods(number))
        for uid in _pods(number):
            way.enter(uid, now=0.0)
    return way


def test_who_finds_the_way_full_is_called_in_turn_when_there_is_room() -> None:
    way = _full_flight()
    assert [way.admits(_gang(number), _pods(number)) for number in (30, 31, 30)] == [False] * 3
    assert way.next_gangs() == []
    way.leave(PodUid("gang00-0"))
    assert way.next_gangs() == [_gang(30)]
    assert way.next_gangs() == [_gang(31)]
    assert way.next_gangs() == []


def test_a_gang_goes_whole() -> None:
    way = _full_flight()
    assert way.admits(_gang(0), _pods(0))


def test_a_gang_that_went_meanwhile_is_not_called() -> None:
    way = _full_flight()
    assert not way.admits(_gang(30), _pods(30))
    way.leave(PodUid("gang00-0"))
    assert way.admits(_gang(30), _pods(30))
    assert way.next_gangs() == []


def test_a_gang_that_lost_its_places_is_not_called() -> None:
    way = _full_flight()
    way.admits(_gang(30), _pods(30))
    way.cancel(_gang(30))
    way.leave(PodUid("gang00-0"))
    assert way.next_gangs() == []


def test_it_is_crowded_when_many_wait_for_it() -> None:
    way = _full_flight()
    crowded = []
    for number in range(30, 46):
        crowded.append(way.is_crowded)
        way.admits(_gang(number), _pods(number))
    assert not any(crowded)
    assert way.is_crowded


def test_who_never_arrives_is_not_waited_for() -> None:
    way = _full_flight()
    assert not way.admits(_gang(30), _pods(30))
    way.drop_slow(now=9.0)
    assert way.next_gangs() == []
    way.drop_slow(now=10.0)
    assert way.next_gangs() == [_gang(30)]
