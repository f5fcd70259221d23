"""Where gangs that do not exist yet would be."""

from extender.cells.views.listings import run_to_end
from extender.queue.order.facts import QueueFacts
from extender.queue.order.new_places import NewPlace, places_of
from extender.queue.order.standing import Standing
from policy.submission import GangKey, VcName


def _standing(level: int, asked: float) -> Standing:
    name = ("urgent", "batch")[level]
    return Standing(level=level, level_name=name, own_level_name=name, asked=asked)


def _facts(name: str) -> QueueFacts:
    return QueueFacts(gang=GangKey("lab", name), user="", vc=VcName("lab"), leaf_cells=1, asked=9.0)


def test_a_new_gang_is_behind_those_that_rank_before_it_in_its_level() -> None:
    ranks = [_standing(0, 1.0), _standing(0, 20.0), _standing(1, 2.0), _standing(1, 3.0)]
    waiting = [(_facts(f"gang-{number}"), one) for number, one in enumerate(ranks)]
    new = {"urgent": _standing(0, 9.0), "batch": _standing(1, 9.0)}
    places = run_to_end(
        places_of(
            [_facts(name) for name in new],
            waiting,
            standing=lambda facts: new[facts.gang.name],
        )
    )
    assert places == [
        NewPlace(ahead=1, level="urgent", level_place=2),
        NewPlace(ahead=4, level="batch", level_place=3),
    ]
