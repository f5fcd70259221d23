"""Two runs side by side: who gains, who loses, and by what rows."""

from collections.abc import Sequence

from tests.support.timemachine.worlds import HOUR, MINUTE, a_world, an_arrival
from timemachine.compare import compare
from timemachine.comparison import ChangeKind, Comparison, Grouping
from timemachine.model import Arrival, World
from timemachine.play import play


def _compared(arrivals: Sequence[Arrival], before: World, after: World) -> Comparison:
    return compare(play(arrivals, before), play(arrivals, after), source="a test")


def test_equal_runs_have_no_changes() -> None:
    arrivals = [an_arrival("one"), an_arrival("two", 8, 8, at=60.0)]
    found = _compared(arrivals, a_world(), a_world(title="again"))
    assert (found.gangs, dict(found.counts)) == (2, {})
    assert (found.gains, found.losses, found.others) == ([], [], [])
    assert found.before.all == found.after.all


def test_gang_that_rules_refuse_is_told_with_the_reason() -> None:
    after = a_world(rules="rules: [{user: alice, then: fail}]", title="after")
    found = _compared([an_arrival("one")], a_world(), after)
    assert found.counts == {ChangeKind.REFUSED: 1}
    assert (found.before.refused, found.after.refused) == (0, 1)
    (change,) = found.others
    assert (change.gang, change.kind) == ("team/one", ChangeKind.REFUSED)
    assert change.before == "class prod, started after 0 s on r0/n0"
    assert change.after.startswith("refused: alice asked for 8 leaf cells in class prod: refused")


def test_admitted_is_the_opposite_of_refused() -> None:
    before = a_world(rules="rules: [{user: alice, then: fail}]")
    found = _compared([an_arrival("one")], before, a_world())
    assert found.counts == {ChangeKind.ADMITTED: 1}


def test_lowered_gang_is_told_and_counted() -> None:
    after = a_world(rules="rules: [{user: alice, then: oppo}]")
    found = _compared([an_arrival("one")], a_world(), after)
    assert found.counts == {ChangeKind.LOWERED: 1}
    assert (found.before.lowered, found.after.lowered) == (0, 1)
    back = _compared([an_arrival("one")], after, a_world())
    assert back.counts == {ChangeKind.RAISED: 1}


def test_gains_and_losses_are_listed_with_the_largest_first() -> None:
    """Shortest first lets short gangs go ahead of the long one that asked before them."""
    longest = an_arrival("long", 8, 8, at=2.0, runs=5 * HOUR, expected_seconds=5 * HOUR)
    short = an_arrival("short", 8, 8, at=3.0, runs=HOUR, expected_seconds=HOUR)
    arrivals = [an_arrival("first", 8, 8, runs=HOUR), longest, short]
    after = a_world(queues="levels: [{name: all, strategy: shortest-first}]")
    found = _compared(arrivals, a_world(), after)
    assert [(one.gang, round(one.seconds)) for one in found.gains] == [("team/short", -5 * HOUR)]
    assert [(one.gang, round(one.seconds)) for one in found.losses] == [("team/long", HOUR)]
    assert found.counts == {ChangeKind.STARTS_EARLIER: 1, ChangeKind.STARTS_LATER: 1}
    assert found.after.all.mean < found.before.all.mean


def test_rows_are_those_of_both_sides() -> None:
    arrivals = [
        an_arrival("one", 1, groups=["nlp"]),
        an_arrival("two", 8, 4, vc="b", asks="oppo"),
        an_arrival("big", 8, 8, 8, 8, asks="oppo"),
    ]
    after = a_world(quotas="groups: [{name: nlp, over: fail, limits: {gangs: 0}}]")
    found = _compared(arrivals, a_world(), after)
    rows = {grouping: list(table) for grouping, table in found.after.by.items()}
    assert rows == {
        Grouping.VC: ["a", "b"],
        Grouping.GROUP: ["nlp", "(no group)"],
        Grouping.CLASS: ["prod", "oppo"],
        Grouping.SIZE: ["1", "8 to 15", "32 to 63"],
    }
    assert {grouping: list(table) for grouping, table in found.before.by.items()} == rows
    assert found.before.by[Grouping.VC]["a"].gangs == 2
    assert found.after.by[Grouping.VC]["a"].gangs == 1


def test_waits_until_the_end_count_and_those_of_impossible_gangs_do_not() -> None:
    quotas = "groups: [{name: nlp, over: queue, limits: {leafCells: 4}}]"
    waiting = an_arrival("waiting", 8, groups=["nlp"])
    huge, other = an_arrival("huge", 8, 8, 8), an_arrival("other", 8, runs=HOUR)
    found = _compared([waiting, huge, other], a_world(quotas=quotas), a_world(quotas=quotas))
    waits = found.after.all
    assert (waits.gangs, waits.never_started) == (3, 2)
    assert waits.longest >= HOUR
    assert waits.median == waits.longest / 2


def test_gangs_at_the_ends_of_a_trace_count_in_no_figure() -> None:
    holder = an_arrival("holder", 8, 8, is_counted=False)
    found = _compared([holder, an_arrival("one", 8, at=MINUTE)], a_world(), a_world())
    assert (found.gangs, found.before.all.gangs) == (1, 1)


def test_what_cannot_be_known_is_said_with_numbers() -> None:
    arrivals = [an_arrival("one", is_predicted=True), an_arrival("huge", 8, 8, 8)]
    found = _compared(arrivals, a_world(), a_world(title="after"))
    assert any("of 1 of 2 gangs are predicted" in one for one in found.unknown)
    assert "after: 1 gang can never start and is not planned; in a real queue they would wait." in (
        found.unknown
    )


def test_what_holds_for_one_run_alone_is_said_once() -> None:
    run = play([an_arrival("huge", 8, 8, 8)], a_world())
    found = compare(run, run, source="a test")
    assert len([one for one in found.unknown if "can never start" in one]) == 1
