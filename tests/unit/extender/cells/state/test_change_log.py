"""The change log returns all entries since a position, perhaps more, or none if they are lost."""

from extender.cells.state import change_log
from extender.cells.state.change_log import ChangeLog
from extender.cells.state.tree import build_tree_stepwise
from extender.cells.views.listings import run_to_end
from tests.support.cells.builders import a_cluster


def test_changes_are_told_to_each_reader_from_where_it_stopped() -> None:
    (chain,) = a_cluster("3 nodes x 1").build().chains.values()
    first, second, third = run_to_end(build_tree_stepwise(chain)).root.children
    log = ChangeLog()
    log.record(first)
    then = log.now
    log.record(second)
    log.record(third)

    assert log.since(0) == [first, second, third]
    assert log.since(then) == [second, third]
    assert log.since(log.now) == []


def test_many_changes_of_the_same_cells_are_remembered_once() -> None:
    (chain,) = a_cluster("3 nodes x 1").build().chains.values()
    first, second, third = run_to_end(build_tree_stepwise(chain)).root.children
    log = ChangeLog()
    log.record(first)
    for _ in range(change_log._MOST):
        log.record(second)
    then = log.now
    log.record(third)

    assert log.since(0) == [first, second, second, third]
    assert log.since(then) == [third]


def test_a_trial_that_was_undone_is_told_to_those_only_who_read_within_it() -> None:
    (chain,) = a_cluster("3 nodes x 1").build().chains.values()
    first, second, third = run_to_end(build_tree_stepwise(chain)).root.children
    log = ChangeLog()
    log.record(first)
    before, start = log.now, log.begin_trial()
    log.record(second)
    within = log.now
    log.record(second)  # as it was
    log.note_undone(start)
    after = log.now
    log.record(third)

    assert log.since(before) == [third]
    assert log.since(within) == [second, third]
    assert log.since(after) == [third]


def test_trials_within_which_nobody_reads_leave_no_trace() -> None:
    (chain,) = a_cluster("1 nodes x 1").build().chains.values()
    (cell,) = run_to_end(build_tree_stepwise(chain)).root.children
    log = ChangeLog()
    before = log.now
    for _ in range(10):
        start = log.begin_trial()
        log.record(cell)
        log.note_undone(start)

    assert log.now == before
    assert log.count_since(0) == 0


def test_too_many_different_changes_are_forgotten() -> None:
    (chain,) = a_cluster(f"{change_log._MOST} nodes x 1").build().chains.values()
    tree = run_to_end(build_tree_stepwise(chain))
    log = ChangeLog()
    for _ in range(2):
        for cell in tree.cells.values():
            log.record(cell)

    assert log.since(0) is None
    assert log.since(log.now) == []
