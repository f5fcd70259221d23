"""Ranks that change while gangs wait: recent use, the use of VCs."""

from tests.support.timemachine.worlds import HOUR, MINUTE, a_world, an_arrival, starts_of
from timemachine.play import play

FAIR = "levels: [{name: all, strategy: fair-share}]"


def test_users_who_used_much_lately_wait_behind_others() -> None:
    """Alice's second gang asked before bob's, but the cluster was hers for ten hours."""
    used = an_arrival("used", 8, 8, user="alice", runs=10 * HOUR)
    again = an_arrival("again", 8, 8, user="alice", at=9 * HOUR)
    other = an_arrival("other", 8, 8, user="bob", at=9 * HOUR + MINUTE)
    waits = [used, again, other]
    fifo = starts_of(play(waits, a_world(queues="levels: [{name: all, strategy: fifo}]")))
    assert (fifo["again"], fifo["other"]) == (10 * HOUR, 11 * HOUR)
    fair = starts_of(play(waits, a_world(queues=FAIR)))
    assert (fair["other"], fair["again"]) == (10 * HOUR, 11 * HOUR)


def test_use_of_gangs_that_still_run_counts() -> None:
    """Half of the VC stays in use by alice, who has no ended run."""
    running = an_arrival("running", 8, user="alice", runs=40 * HOUR)
    holder = an_arrival("holder", 8, user="carol", runs=10 * HOUR)
    again = an_arrival("again", 8, user="alice", at=9 * HOUR)
    other = an_arrival("other", 8, user="bob", at=9 * HOUR + MINUTE)
    starts = starts_of(play([running, holder, again, other], a_world(queues=FAIR)))
    assert (starts["other"], starts["again"]) == (10 * HOUR, 11 * HOUR)


def test_small_gangs_go_first_where_they_are_worth_more() -> None:
    queues = "levels: [{name: all, strategy: fifo, worth: {smallGang: 10h}}]"
    holder = an_arrival("holder", 8, 8, runs=HOUR)
    large = an_arrival("large", 8, 8, at=MINUTE)
    small = an_arrival("small", 1, at=2 * MINUTE)
    starts = starts_of(play([holder, large, small], a_world(queues=queues)))
    assert (starts["small"], starts["large"]) == (HOUR, 2 * HOUR)
