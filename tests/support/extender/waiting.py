"""The view of waiting gangs over a shell."""

from collections.abc import Sequence

from extender.inspection.waiting_view import WaitingView
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
        orders={"cells": lambda: cells, "quota": lambda: quota},
        lacks=lambda pod: ["group g holds 8 of 8 leaf cells"] if pod.name == "c-0" else [],
        held_reason=lambda _: None,
        clock=shell.clock,
    )
