"""What gangs of a play hold counts: gangs over quota are refused, wait, or are lowered."""

from policy.rules.decision import Outcome
from tests.support.timemachine.worlds import (
    DAY,
    HOUR,
    MINUTE,
    a_world,
    an_arrival,
    fates_of,
    played,
    starts_of,
)
from timemachine.play import play

NLP = ["nlp"]


def _quotas(over: str, limits: str = "leafCells: 8") -> str:
    return f"groups: [{{name: nlp, over: {over}, limits: {{{limits}}}}}]"


def test_gang_over_quota_is_refused_and_admitted_after_another_one_has_ended() -> None:
    world = a_world(quotas=_quotas("fail"))
    fates = played(
        world,
        an_arrival("first", groups=NLP, runs=HOUR),
        an_arrival("second", groups=NLP, at=MINUTE),
        an_arrival("third", groups=NLP, at=HOUR),
    )
    outcomes = {name: fate.outcome for name, fate in fates.items()}
    assert outcomes == {
        "first": Outcome.ADMITTED,
        "second": Outcome.REFUSED,
        "third": Outcome.ADMITTED,
    }
    assert "refused by the quotas of group nlp" in fates["second"].reason
    assert fates["second"].group == "nlp"


def test_gang_waits_for_quota_until_another_one_has_ended() -> None:
    world = a_world(quotas=_quotas("queue"))
    fates = played(
        world,
        an_arrival("first", groups=NLP, runs=HOUR),
        an_arrival("second", groups=NLP, at=MINUTE),
    )
    assert fates["second"].outcome is Outcome.QUEUED
    assert fates["second"].started == HOUR
    assert "it is over the quotas of group nlp" in fates["second"].reason


def test_gangs_that_wait_for_quota_are_charged_in_the_order_of_the_queue() -> None:
    """A class is worth a week of waiting in the default order."""
    world = a_world(quotas=_quotas("queue"))
    arrivals = [
        an_arrival("first", groups=NLP, runs=HOUR),
        an_arrival("low", groups=NLP, at=MINUTE, asks="test"),
        an_arrival("high", groups=NLP, at=2 * MINUTE, asks="prod"),
        an_arrival("higher", groups=NLP, at=3 * MINUTE, asks="prod"),
    ]
    starts = starts_of(play(arrivals, world))
    assert starts == {"first": 0.0, "high": HOUR, "higher": 2 * HOUR, "low": 3 * HOUR}


def test_smaller_gang_is_charged_although_a_larger_one_waits_before_it() -> None:
    world = a_world(quotas=_quotas("queue"))
    arrivals = [
        an_arrival("first", 4, groups=NLP, runs=HOUR),
        an_arrival("large", 8, groups=NLP, at=MINUTE),
        an_arrival("larger", 8, groups=NLP, at=2 * MINUTE),
        an_arrival("small", 4, groups=NLP, at=3 * MINUTE, runs=2 * HOUR),
    ]
    starts = starts_of(play(arrivals, world))
    assert starts["small"] == 3 * MINUTE
    assert starts["large"] == 3 * MINUTE + 2 * HOUR


def test_leaf_cell_hours_of_a_day_are_there_again_on_the_next_day() -> None:
    world = a_world(quotas=_quotas("queue", "leafCellHours: {day: 8}"))
    arrivals = [
        an_arrival("first", 8, groups=NLP, runs=2 * HOUR),
        an_arrival("second", 8, groups=NLP, at=3 * HOUR),
    ]
    assert starts_of(play(arrivals, world)) == {"first": 0.0, "second": DAY}


def test_gang_over_quota_is_lowered_and_rises_when_there_is_room() -> None:
    """As opportunistic gang it may be preempted; once it has risen it is not."""
    world = a_world(quotas=_quotas("oppo"))
    arrivals = [
        an_arrival("first", 8, groups=NLP, runs=HOUR),
        an_arrival("second", 8, groups=NLP, at=MINUTE, runs=10 * HOUR),
        an_arrival("others", 8, 8, vc="b", at=2 * HOUR),
        an_arrival("late", 8, user="bob", at=2 * HOUR),
        an_arrival("later", 8, user="bob", at=2 * HOUR),
    ]
    fates = fates_of(play(arrivals, world))
    assert (fates["second"].class_name, fates["second"].is_lowered) == ("oppo", True)
    assert "is lowered to oppo" in fates["second"].reason
    assert fates["second"].preemptions == 0
    assert fates["later"].started == 3 * HOUR


def test_gang_that_stays_over_quota_is_preempted() -> None:
    world = a_world(quotas=_quotas("oppo"))
    arrivals = [
        an_arrival("first", 8, groups=NLP, runs=20 * HOUR),
        an_arrival("second", 8, groups=NLP, at=MINUTE, runs=10 * HOUR),
        an_arrival("others", 8, 8, vc="b", at=2 * HOUR),
        an_arrival("late", 8, user="bob", at=2 * HOUR),
    ]
    fates = fates_of(play(arrivals, world))
    assert fates["second"].preemptions == 1


def test_rules_count_what_the_submitter_holds() -> None:
    world = a_world(rules="rules: [{user: alice, occupiedHigh: '>8', then: oppo}]")
    arrivals = [
        an_arrival("first", 8, runs=HOUR),
        an_arrival("second", 8, at=MINUTE),
        an_arrival("third", 8, at=HOUR),
    ]
    classes = [fate.class_name for fate in play(arrivals, world).fates]
    assert classes == ["prod", "oppo", "prod"]


def test_user_may_not_name_the_group_of_others() -> None:
    fate = played(a_world(quotas=_quotas("fail")), an_arrival("one", charged_group="nlp"))["one"]
    assert fate.outcome is Outcome.REFUSED
    assert "is not a quota group of yours" in fate.reason


def test_limits_of_a_leaf_type_count_gangs_that_name_it() -> None:
    world = a_world(quotas=_quotas("fail", "byLeafType: {gpu: 8}"))
    arrivals = [
        an_arrival("typed", 8, groups=NLP, leaf_type="gpu"),
        an_arrival("more", 8, groups=NLP, at=MINUTE, leaf_type="gpu"),
        an_arrival("any", 8, groups=NLP, at=MINUTE),
    ]
    outcomes = [fate.outcome for fate in play(arrivals, world).fates]
    assert outcomes == [Outcome.ADMITTED, Outcome.ADMITTED, Outcome.REFUSED]
