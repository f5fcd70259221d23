"""One run: who starts when, who is preempted, who never starts."""

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
    two_vcs,
)
from timemachine.model import World
from timemachine.play import Progress, play


def test_gang_starts_at_once_where_there_is_room_and_ends_after_its_run() -> None:
    fate = played(a_world(), an_arrival("one", 8, 8, at=100.0, runs=50.0))["one"]
    assert (fate.outcome, fate.started, fate.ended) == (Outcome.ADMITTED, 100.0, 150.0)
    assert len(fate.nodes) == 2


def test_gang_waits_until_another_one_ends() -> None:
    first = an_arrival("first", 8, 8, runs=HOUR)
    second = an_arrival("second", 8, at=60.0, runs=HOUR)
    assert starts_of(play([first, second], a_world())) == {"first": 0.0, "second": HOUR}


def test_arrivals_may_be_given_in_any_order() -> None:
    early, late = an_arrival("early", 8, 8), an_arrival("late", 8, 8, at=1.0)
    assert play([late, early], a_world()).fates == play([early, late], a_world()).fates


def test_equal_inputs_give_equal_runs() -> None:
    arrivals = [
        an_arrival(f"gang-{index}", 1 + index % 8, at=index * 60.0, runs=600.0 * (1 + index % 7))
        for index in range(60)
    ]
    world = a_world()
    assert play(arrivals, world) == play(arrivals, world)


def test_gangs_of_one_name_are_played_each() -> None:
    first, again = an_arrival("same", at=0.0), an_arrival("same", at=10.0)
    assert [fate.started for fate in play([first, again], a_world()).fates] == [0.0, 10.0]


def test_guaranteed_gang_preempts_an_opportunistic_one_which_runs_again_from_the_beginning() -> (
    None
):
    borrower = an_arrival("borrower", 8, 8, 8, 8, vc="b", asks="oppo", runs=2 * HOUR)
    owner = an_arrival("owner", 8, at=HOUR, runs=HOUR)
    fates = played(a_world(), borrower, owner)
    assert fates["owner"].started == HOUR
    assert fates["borrower"].started == 0.0
    assert fates["borrower"].preemptions == 1
    assert fates["borrower"].ended == 2 * HOUR + 2 * HOUR


def test_preempted_gang_keeps_its_age() -> None:
    """It asked before the other opportunistic gang, which therefore waits for it."""
    borrower = an_arrival("borrower", 8, 8, 8, 8, vc="b", asks="oppo", runs=2 * HOUR)
    owner = an_arrival("owner", 8, at=HOUR, runs=HOUR)
    younger = an_arrival("younger", 8, 8, 8, 8, vc="b", asks="oppo", at=60.0, runs=HOUR)
    fates = played(a_world(), borrower, owner, younger)
    assert fates["borrower"].ended == 4 * HOUR
    assert fates["younger"].started == 4 * HOUR


def test_victim_runs_on_for_the_grace_of_the_document() -> None:
    queues = "levels: [{name: all, strategy: fifo}]\npreemption: {grace: 5m}"
    borrower = an_arrival("borrower", 8, 8, 8, 8, vc="b", asks="oppo", runs=2 * HOUR)
    owner = an_arrival("owner", 8, at=HOUR, runs=HOUR)
    fates = played(a_world(queues=queues), borrower, owner)
    assert fates["owner"].started == HOUR + 5 * MINUTE


def test_victim_that_ends_by_itself_within_the_grace_was_not_preempted() -> None:
    queues = "levels: [{name: all, strategy: fifo}]\npreemption: {grace: 5m}"
    borrower = an_arrival("borrower", 8, 8, 8, 8, vc="b", asks="oppo", runs=HOUR + MINUTE)
    owner = an_arrival("owner", 8, at=HOUR, runs=HOUR)
    fates = played(a_world(queues=queues), borrower, owner)
    assert fates["owner"].started == HOUR + MINUTE
    assert (fates["borrower"].preemptions, fates["borrower"].ended) == (0, HOUR + MINUTE)


def test_gang_of_the_same_vc_is_protected_by_the_minimum_run() -> None:
    queues = "levels: [{name: all, strategy: fifo}]\npreemption: {minimumRun: 30m}"
    low = an_arrival("low", 8, 8, asks="test", runs=2 * HOUR)
    high = an_arrival("high", 8, 8, asks="prod", at=10 * MINUTE)
    assert played(a_world(), low, high)["high"].started == 10 * MINUTE
    assert played(a_world(queues=queues), low, high)["high"].started == 30 * MINUTE


def test_gang_that_can_never_start_is_reported_and_holds_up_no_other() -> None:
    fates = played(a_world(), an_arrival("huge", 8, 8, 8), an_arrival("small", 8, at=1.0))
    assert fates["small"].started == 1.0
    assert not fates["huge"].can_start
    assert fates["huge"].started is None
    assert fates["huge"].outcome is Outcome.ADMITTED
    assert fates["huge"].reason.startswith("can never start: ")


def test_gang_that_can_never_start_is_refused_where_the_rules_say_so() -> None:
    world = a_world(rules="impossible: refuse\nrules: []")
    assert played(world, an_arrival("huge", 8, 8, 8))["huge"].outcome is Outcome.REFUSED


def test_gang_of_an_unknown_class_is_refused() -> None:
    fate = played(a_world(), an_arrival("one", asks="gold"))["one"]
    assert fate.outcome is Outcome.REFUSED
    assert '"gold" is not in the Classes document' in fate.reason


def test_gang_starts_with_its_least_members() -> None:
    holder = an_arrival("holder", 8, runs=HOUR)
    elastic = an_arrival("elastic", 8, 8, at=1.0, gang_min=1)
    assert played(a_world(), holder, elastic)["elastic"].started == 1.0


def test_gang_without_leaf_cells_starts_at_once() -> None:
    fate = played(a_world(), an_arrival("cpu", 0, at=5.0, runs=10.0))["cpu"]
    assert (fate.started, fate.ended, fate.nodes) == (5.0, 15.0, ())


def test_run_ends_at_its_limit() -> None:
    assert played(a_world(), an_arrival("one", limit_seconds=60.0))["one"].ended == 60.0


def test_enforced_longest_run_ends_gangs_of_the_class() -> None:
    queues = "levels: [{name: all, strategy: fifo}]\nrunTime: {longest: {prod: 30m}, enforce: true}"
    fates = played(a_world(queues=queues), an_arrival("one"), an_arrival("other", asks="test"))
    assert (fates["one"].ended, fates["other"].ended) == (30 * MINUTE, HOUR)


def test_without_a_cluster_document_every_gang_may_use_every_node() -> None:
    world = a_world(two_vcs())
    open_world = World(title="open", policy=world.policy, topology=None, nodes=world.nodes)
    fate = fates_of(play([an_arrival("wide", 8, 8, 8, 8, vc="any")], open_world))["wide"]
    assert (fate.started, len(fate.nodes)) == (0.0, 4)


def test_many_gangs_that_wait_for_ever_do_not_keep_a_run_from_ending() -> None:
    """The quota of their group has no room for any of them."""
    quotas = "groups:\n- {name: nlp, over: queue, limits: {leafCells: 4}}"
    gangs = [an_arrival(f"gang-{n}", 8, at=n * DAY, groups=["nlp"]) for n in range(3)]
    run = play(gangs, a_world(quotas=quotas))
    assert [fate.started for fate in run.fates] == [None, None, None]
    assert all(fate.outcome is Outcome.QUEUED for fate in run.fates)


def test_progress_tells_how_many_have_arrived() -> None:
    told: list[Progress] = []
    play([an_arrival("one"), an_arrival("two", at=60.0)], a_world(), on_progress=told.append)
    assert told[0] == Progress(at=0.0, arrived=1, arrivals=2)
    assert (told[-1].at, told[-1].arrived) == (HOUR + 60.0, 2)


def test_run_without_arrivals_is_empty() -> None:
    run = play([], a_world())
    assert (run.fates, run.use, run.utilisation) == ([], [], 0.0)
