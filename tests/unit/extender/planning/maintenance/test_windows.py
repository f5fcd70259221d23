"""Maintenance windows and Kubernetes: nodes by their labels, gangs that are named beforehand."""

import asyncio

from extender.cells.views.listings import run_to_end
from policy.submission import NodeName
from tests.support.extender.window_world import DOCUMENT, GANG, WindowWorld
from tests.support.kube.nodes import a_node

_HOUR = 3600.0


def test_nodes_belong_to_a_window_by_name_and_by_label() -> None:
    world = WindowWorld()
    calendar = world.reservations.calendar
    assert list(calendar.nodes_of(world.window)) == ["node-00", "gone"]
    world.shell.cluster.observe_node(a_node("node-01").labelled("rack", "r1").read())
    assert list(calendar.nodes_of(world.window)) == ["node-00", "gone", "node-01"]
    world.shell.cluster.observe_node(a_node("node-01").labelled("rack", "r2").read())
    assert list(calendar.nodes_of(world.window)) == ["node-00", "gone"]
    world.apply(DOCUMENT.replace("rack: r1", "rack: r2"))
    assert list(calendar.nodes_of(world.window)) == ["node-00", "gone", "node-01"]
    world.shell.cluster.forget_node(NodeName("node-01"))
    assert list(calendar.nodes_of(world.window)) == ["node-00", "gone"]


def test_the_gangs_concerned_are_found_with_their_expected_ends() -> None:
    world = WindowWorld()
    world.expect(1.5 * _HOUR)
    (found,) = world.concerned(world.window)
    assert (found.gang, found.nodes, found.expected_end) == (GANG, ("node-00",), 1.5 * _HOUR)
    assert not found.is_expected_at(world.window.begins)


def test_owners_are_told_once_beforehand_and_once_when_it_begins() -> None:
    world = WindowWorld()
    run_to_end(world.notices.tell())
    assert world.told("MaintenanceAhead") == []  # the notice has not begun
    world.at(1.1 * _HOUR)
    run_to_end(world.notices.tell())
    run_to_end(world.notices.tell())
    assert world.told("MaintenanceAhead") == [
        "gang lab/bert runs on node node-00, which will be in maintenance window firmware from "
        "1970-01-01T02:00:00Z until 1970-01-01T03:00:00Z (new firmware); when it ends is not "
        "known: save its work before, or end it and let it start elsewhere"
    ]
    world.at(2 * _HOUR)
    run_to_end(world.notices.tell())
    run_to_end(world.notices.tell())
    assert world.told("MaintenanceBegan") == [
        "gang lab/bert runs on node node-00, in maintenance window firmware from "
        "1970-01-01T02:00:00Z until 1970-01-01T03:00:00Z (new firmware); Cellgate does not end it, "
        "but the admins of the nodes may"
    ]
    world.at(3 * _HOUR)
    run_to_end(world.notices.tell())
    assert world.notices._told == set()


def test_a_gang_that_ends_in_time_is_not_told() -> None:
    world = WindowWorld()
    world.expect(0.5 * _HOUR)
    world.at(1.1 * _HOUR)
    run_to_end(world.notices.tell())
    assert world.told("MaintenanceAhead") == []


async def test_a_changed_document_is_looked_at_soon() -> None:
    world = WindowWorld()
    world.apply("apiVersion: cellgate.io/v1\nkind: Queues\nlevels: [{name: a, strategy: fifo}]")
    task = asyncio.create_task(world.notices.run())
    await asyncio.sleep(0.01)
    world.at(1.1 * _HOUR)
    world.apply(DOCUMENT)
    world.notices.note_change()
    await asyncio.sleep(0.01)
    assert len(world.told("MaintenanceAhead")) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
