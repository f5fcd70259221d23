"""Who may go from release to binding."""

from extender.queue.in_flight import Way
from policy.submission import GangKey, PodUid


def _gang(number: int) -> GangKey:
    return GangKey("ns", f"gang{number:02}")


def _pods(number: int) -> list[PodUid]:
    return [PodUid(f"gang{number:02}-{index}") for index in range(4)]


def _full_way() -> Way:
    """As many gangs of four as the way takes."""
    way = Way()
    for number in range(24):
        assert way.lets_go(_gang(number), _pods(number))
        for uid in _pods(number):
            way.enter(uid, now=0.0)
    return way


def test_who_finds_the_way_full_is_called_in_turn_when_there_is_room() -> None:
    way = _full_way()
    assert [way.lets_go(_gang(number), _pods(number)) for number in (30, 31, 30)] == [False] * 3
    assert way.call_next() == []
    way.leave(PodUid("gang00-0"))
    assert way.call_next() == [_gang(30)]
    assert way.call_next() == [_gang(31)]
    assert way.call_next() == []


def test_a_gang_goes_whole() -> None:
    way = _full_way()
    assert way.lets_go(_gang(0), _pods(0))


def test_a_gang_that_went_meanwhile_is_not_called() -> None:
    way = _full_way()
    assert not way.lets_go(_gang(30), _pods(30))
    way.leave(PodUid("gang00-0"))
    assert way.lets_go(_gang(30), _pods(30))
    assert way.call_next() == []


def test_a_gang_that_lost_its_places_is_not_called() -> None:
    way = _full_way()
    way.lets_go(_gang(30), _pods(30))
    way.call_off(_gang(30))
    way.leave(PodUid("gang00-0"))
    assert way.call_next() == []


def test_it_is_crowded_when_many_wait_for_it() -> None:
    way = _full_way()
    crowded = []
    for number in range(30, 46):
        crowded.append(way.is_crowded)
        way.lets_go(_gang(number), _pods(number))
    assert not any(crowded)
    assert way.is_crowded


def test_who_never_arrives_is_not_waited_for() -> None:
    way = _full_way()
    assert not way.lets_go(_gang(30), _pods(30))
    way.clear(now=9.0)
    assert way.call_next() == []
    way.clear(now=10.0)
    assert way.call_next() == [_gang(30)]
