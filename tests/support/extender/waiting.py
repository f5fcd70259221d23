"""The view of waiting gangs over a shell."""

from collections.abc import Sequence

from extender.inspection.waiting_view import WaitingView
from extender.planning.pod_ranks import PodRanks
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.listing import Ranked
from extender.queue.ports import UnknownRunTimes
from policy.queues.queues import DEFAULT_QUEUES
from policy.submission import GangKey
from tests.support.extender.shell import Shell


def a_waiting_view(
    shell: Shell, *, cells: Sequence[GangKey] = (), quota: Sequence[GangKey] = ()
) -> WaitingView:
    """A view in which gangs wait for cells and for quota in these orders."""
    return WaitingView(
        shell.waiting,
        pods=shell.pods,
        has_place=shell.cluster.has_place,
        orders={"cells": lambda: _ranked(shell, cells), "quota": lambda: _ranked(shell, quota)},
        lacks=lambda pod: ["group g holds 8 of 8 leaf cells"] if pod.name == "c-0" else [],
        held_reason=lambda _: None,
        queues=lambda: DEFAULT_QUEUES,
        clock=shell.clock,
    )


def _ranked(shell: Shell, gangs: Sequence[GangKey]) -> list[Ranked]:
    ranks = PodRanks(
        GangOrder(),
        pods=shell.pods,
        run_times=UnknownRunTimes(),
        to_request=shell.to_request,
        clock=shell.clock,
    )
    return [ranks.ranked(shell.pods.of_gang(gang)) for gang in gangs]
