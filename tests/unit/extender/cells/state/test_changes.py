"""The log of changes: everything since then, perhaps more, or nothing at all."""

from extender.cells.state import changes
from extender.cells.state.changes import Changes
from extender.cells.state.tree import build_tree
from tests.support.cells.builders import a_cluster


def test_changes_are_told_to_each_reader_from_where_it_stopped() -> None:
    (chain,) = a_cluster("3 nodes x 1").build().chains.values()
    first, second, third = build_tree(chain).root.children
    log = Changes()
    log.note(first)
    then = log.now
    log.note(second)
    log.note(third)

    assert log.since(0) == [first, second, third]
    assert log.since(then) == [second, third]
    assert log.since(log.now) == []


def test_many_changes_of_the_same_cells_are_remembered_once() -> None:
    (chain,) = a_cluster("3 nodes x 1").build().chains.values()
    first, second, third = build_tree(chain).root.children
    log = Changes()
    log.note(first)
    for _ in range(changes._MOST):
        log.note(second)
    then = log.now
    log.note(third)

    assert log.since(0) == [first, second, second, third]
    assert log.since(then) == [third]


def test_too_many_different_changes_are_forgotten() -> None:
    (chain,) = a_cluster(f"{changes._MOST} nodes x 1").build().chains.values()
    tree = build_tree(chain)
    log = Changes()
    for _ in range(2):
        for cell in tree.cells.values():
            log.note(cell)

    assert log.since(0) is None
    assert log.since(log.now) == []
