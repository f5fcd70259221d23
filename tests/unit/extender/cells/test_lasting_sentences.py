"""The sentences that stay in a pod's condition for as long as its gang waits."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from extender.cells.lasting_sentences import lasting_text
from extender.cells.model import Argument, Decision, Place, Reason, ReasonCode
from extender.cells.wording import explain
from tests.support.cells import refused_requests as requests

LASTING: dict[Callable[[], Decision | Reason], str] = {
    requests.no_room: (
        "gang ns/bert needs 2 x 2 leaf cells of type A100, each member on one node; there is not "
        "enough room now; starts once enough leaf cells are free"
    ),
    requests.vc_full: (
        "gang ns/bert needs 1 leaf cell; too few leaf cells of VC a are unused; starts once "
        "other gangs of VC a have ended, or with a higher priority than theirs"
    ),
    requests.pinned_full: (
        "gang ns/bert needs 1 leaf cell; too few leaf cells of pinned cell PIN are unused; "
        "starts once other gangs of VC a have ended, or with a higher priority than theirs"
    ),
    requests.vc_without_promises: (
        "gang ns/bert has a guaranteed class, but VC a was promised no leaf cells; use an "
        "opportunistic class, or another VC (label `cellgate.io/vc`)"
    ),
    requests.bad_cells: (
        "gang ns/bert needs 2 x 2 leaf cells; too many of the leaf cells that it could use are "
        "bad; starts once nodes are healthy again or other gangs have ended"
    ),
    requests.foreign_use: (
        "gang ns/bert needs 2 x 2 leaf cells; leaf cells that it could use are in use by pods that "
        "Cellgate did not place; starts once enough of these leaf cells are free; an admin can end "
        "these pods, and with `foreign: reclaim` in the Cluster document Cellgate ends those that "
        "it may end"
    ),
    requests.lacks_cpu: (
        "gang ns/bert needs 2 x 2 leaf cells and 1.5 CPUs for each member; nodes that have leaf "
        "cells for it lack cpu; starts once pods on these nodes have ended, or with smaller "
        "requests"
    ),
}


def reason_of(ask: Callable[[], Decision | Reason]) -> Reason:
    answer = ask()
    assert not isinstance(answer, Place)
    return answer if isinstance(answer, Reason) else answer.reason


@pytest.mark.parametrize(
    ("ask", "text"), LASTING.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_what_a_condition_says(ask: Callable[[], Decision | Reason], text: str) -> None:
    assert lasting_text(reason_of(ask)) == text


@pytest.mark.parametrize(
    ("code", "arguments", "drifting"),
    [
        (ReasonCode.GATHERING, {"needed": 4, "size": 4}, {"members": (1, 3)}),
        (ReasonCode.GATHERING, {"needed": 2, "size": 4}, {"members": (0, 1)}),
        (ReasonCode.MEMBERS_ENDING, {}, {"members": (1, 3)}),
    ],
)
def test_numbers_that_change_are_left_out(
    code: ReasonCode, arguments: dict[str, Argument], drifting: Mapping[str, tuple[Any, Any]]
) -> None:
    both = [
        explain(
            code, gang="ns/bert", **arguments, **{name: pair[at] for name, pair in drifting.items()}
        )
        for at in (0, 1)
    ]
    assert both[0].text != both[1].text
    assert lasting_text(both[0]) == lasting_text(both[1])


def test_other_sentences_stay_as_they_are() -> None:
    reason = explain(ReasonCode.QUOTA, gang="ns/bert", group="g", leaf_cells=8)
    assert lasting_text(reason) == reason.text
