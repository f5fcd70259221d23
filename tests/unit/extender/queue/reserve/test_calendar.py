"""What the calendar answers costs little however many nodes and windows there are."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from extender.queue.reserve.calendar import Calendar
from policy.queues.windows import MaintenanceWindow
from policy.submission import NodeName


class _NotRead(set[NodeName]):
    """Nodes that were not asked for."""

    def __iter__(self) -> Iterator[NodeName]:
        raise AssertionError("the nodes of a window were looked at")


def _calendar(*windows: MaintenanceWindow) -> tuple[Calendar, Any]:
    ranking = SimpleNamespace(now=0.0, order=SimpleNamespace())
    ranking.order.queues = SimpleNamespace(maintenance=windows, reservations=())
    return Calendar(cast(Any, None), cast(Any, ranking)), ranking


def _window(name: str, *nodes: str, begins: float = 10.0) -> MaintenanceWindow:
    return MaintenanceWindow(
        name=name,
        nodes=tuple(map(NodeName, nodes)),
        labels=(("rack", "r1"),),
        begins=begins,
        ends=20.0,
        notice=0.0,
    )


def test_the_same_windows_close_the_same_nodes_without_looking_again() -> None:
    """Each decision asks: 200 windows of 4,000 nodes would stop the planner for 100 ms."""
    first, second = _window("a", "n1"), _window("b", "n2", begins=15.0)
    calendar, _ = _calendar(first, second)
    calendar.note_nodes({"a": {NodeName("n3")}})
    closed = calendar.closed_between(0.0, 12.0)
    assert closed == {"n1": first, "n3": first}
    assert calendar.closed_between(1.0, 11.0) is closed
    assert calendar.closed_between(0.0, 16.0) == dict(closed) | {NodeName("n2"): second}


def test_other_nodes_and_other_windows_count_at_once() -> None:
    first = _window("a", "n1")
    calendar, ranking = _calendar(first)
    assert list(calendar.closed_between(0.0, 12.0)) == ["n1"]
    calendar.note_nodes({"a": {NodeName("n3")}})
    assert list(calendar.closed_between(0.0, 12.0)) == ["n1", "n3"]
    calendar.note_nodes({})
    assert list(calendar.closed_between(0.0, 12.0)) == ["n1"]
    other = replace(first, nodes=(NodeName("n9"),))
    ranking.order.queues = SimpleNamespace(maintenance=(other,), reservations=())
    assert calendar.closed_between(0.0, 12.0) == {"n9": other}
    assert list(calendar.nodes_of(other)) == ["n9"]


def test_a_change_of_one_node_costs_the_same_however_many_nodes_a_window_has() -> None:
    calendar, _ = _calendar(_window("a"))
    nodes = _NotRead(map(NodeName, ("n1", "n2")))
    assert calendar.has_changed()
    calendar.note_nodes({"a": nodes})
    assert calendar.has_changed()
    calendar.note_nodes({"a": nodes})
    assert calendar.has_changed(), "one of them may be another one"
    assert not calendar.has_changed()
