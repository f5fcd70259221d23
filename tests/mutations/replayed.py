"""The rules whose breach a replay of one log must show; the log was made by rules that hold."""

from typing import Any
from unittest.mock import patch

from extender.cells.decide import shadow
from extender.cells.decide.shadow import ShadowSearch
from extender.cells.preempt.preemption import PreemptionSearch
from extender.cells.state.ranking import Ranking
from extender.cluster import reservation_replay
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.standing import Standing
from extender.queue.reserve import ends, steps
from policy.classes import Classes
from policy.queues.queues import Queues
from tests.mutations.mutation import Mutation, nothing
from tests.support.queue.logged_history import replayed


def the_log_is_decided_alike() -> None:
    """A replay repeats every decision."""
    assert all(report.is_identical for report in replayed())


def _highest(*_: object) -> int:
    return 0


def _last_first(self: Classes, name: Any) -> int | None:
    place = _rank(self, name)
    return None if place is None else len(self.entries) - 1 - place


_rank = Classes.rank
_first_fit = ShadowSearch._first_fit


def _in_vain(*args: Any, **options: Any) -> Any:
    """Instead of leaving the cells of other reservations alone."""
    with patch.object(shadow, "keep", nothing):
        return _first_fit(*args, **options)


def _replayed(rule: str, target: Any, name: str, broken: Any) -> Mutation:
    return Mutation(rule, target, name, broken, (the_log_is_decided_alike,))


REPLAYED = (
    # -- policy
    _replayed("gangs are of the first level, whatever it asks for", Queues, "level_of", _highest),
    _replayed("gangs are never promoted", Queues, "promotion_ages", lambda *_: ()),
    _replayed("classes are counted from the wrong end", Classes, "rank", _last_first),
    # -- queue
    _replayed(
        "what a gang is worth puts it back",
        Standing,
        "rank",
        property(lambda self: self.asked + self.credit),
    ),
    _replayed("long runs count as short ones", GangOrder, "_shortness", lambda *_: 1.0),
    _replayed(
        "the deadline of a reservation ignores the longest run",
        steps,
        "deadline_of",
        lambda shadow, *, longest, now: ends.deadline_of(shadow, longest={}, now=now),
    ),
    _replayed(
        "gathered cells may put the deadline off",
        reservation_replay,
        "gathered_on",
        steps.on_cells,
    ),
    _replayed("a start may be put off by much without a slip", steps, "LEAST_SLIP_SECONDS", 3600.0),
    # -- cells
    _replayed("reserved cells are found for others, too", ShadowSearch, "_first_fit", _in_vain),
    _replayed("no gang makes room for another", PreemptionSearch, "find", nothing),
    _replayed("rankings of cells are not kept", Ranking, "put", nothing),
)
