"""Opportunistic gangs move so that another one fits, only if each of them fits elsewhere."""

from extender.cells.model import MovableGang, Moves
from policy.submission import GangKey, NodeName
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_calls import check, list_cells
from tests.support.cells.engine_world import EngineWorld

EVERYWHERE = [NodeName(f"n{index}") for index in range(4)]


def nodes(count: int) -> EngineWorld:
    return EngineWorld(a_cluster(f"{count} nodes x 4").promising("a", node=1))


def key_of(name: str) -> GangKey:
    return GangKey("ns", name)


def found(
    world: EngineWorld,
    *gangs: tuple[str, float],
    most: float = 100,
    on: dict[str, list[NodeName]] | None = None,
    wanted: GangBuilder | None = None,
) -> Moves | None:
    movable = [
        MovableGang(gang=key_of(name), cost=cost, nodes=(on or {}).get(name, EVERYWHERE))
        for name, cost in gangs
    ]
    before = list_cells(world.engine)
    first = next(iter((wanted or a_gang("large").of(4).at(-1)).members()))
    result = world.engine.moves(first, movable=movable, most_cost=most, candidate_nodes=EVERYWHERE)
    assert list_cells(world.engine) == before, "nothing changes"
    check(world.engine)
    return result


def halves(world: EngineWorld, *names: str, size: int = 2) -> None:
    """One opportunistic gang on each node."""
    for index, name in enumerate(names):
        world.run(a_gang(name).of(size).at(-1), (f"n{index}", tuple(range(size))))


def names(moves: Moves | None) -> list[str]:
    return [] if moves is None else [gang.name for gang in moves.gangs]


def test_the_cheapest_gang_moves_beside_another_one() -> None:
    world = nodes(2)
    halves(world, "one", "two")
    moves = found(world, ("one", 20), ("two", 10))
    assert moves is not None
    assert (names(moves), moves.cost, moves.nodes) == (["two"], 10, ("n1",))


def test_no_gang_moves_that_fits_nowhere_else() -> None:
    world = nodes(2)
    halves(world, "one", "two", size=3)
    assert found(world, ("one", 1), ("two", 1)) is None


def test_a_gang_moves_only_to_nodes_that_it_may_use() -> None:
    world = nodes(2)
    halves(world, "one", "two")
    stay = {"two": [NodeName("n1")]}
    assert names(found(world, ("one", 20), ("two", 10), on=stay)) == ["one"]
    stay["one"] = [NodeName("n0")]
    assert found(world, ("one", 20), ("two", 10), on=stay) is None


def test_what_costs_too_much_does_not_move() -> None:
    world = nodes(2)
    halves(world, "one", "two")
    assert found(world, ("one", 20), ("two", 10), most=9) is None


def test_only_opportunistic_gangs_that_are_listed_move() -> None:
    world = nodes(2)
    world.run(a_gang("own").of(2).at(1), ("n0", (0, 1)))
    world.run(a_gang("two").of(2).at(-1), ("n1", (0, 1)))
    assert found(world, ("own", 0)) is None
    assert names(found(world, ("own", 0), ("two", 5))) == ["two"]


def test_several_gangs_move_if_one_is_not_enough() -> None:
    world = nodes(3)
    for name, leaf in (("a", 0), ("b", 1)):
        world.run(a_gang(name).of(1).at(-1), ("n0", (leaf,)))
    halves_of = {"c": "n1", "d": "n2"}
    for name, node in halves_of.items():
        world.run(a_gang(name).of(3).at(-1), (node, (0, 1, 2)))
    moves = found(world, ("a", 1), ("b", 1), ("c", 1), ("d", 1))
    assert moves is not None
    assert (names(moves), moves.nodes) == (["a", "b"], ("n0",))


def test_a_gang_that_fits_already_or_is_guaranteed_needs_no_moves() -> None:
    world = nodes(3)
    halves(world, "one", "two")
    assert found(world, ("one", 1), ("two", 1)) is None, "n2 is idle"
    guaranteed = a_gang("large").of(4).at(1)
    assert found(world, ("one", 1), ("two", 1), wanted=guaranteed) is None


def test_gangs_of_several_members_move_whole() -> None:
    world = nodes(4)
    world.run(a_gang("wide").of(2, 2).at(-1), ("n0", (0, 1)), ("n1", (0, 1)))
    world.run(a_gang("left").of(2).at(-1), ("n2", (0, 1)))
    world.run(a_gang("right").of(2).at(-1), ("n3", (0, 1)))
    pair = a_gang("large").of(4, 4).at(-1)
    moves = found(world, ("wide", 10), ("left", 20), ("right", 20), wanted=pair)
    assert names(moves) == ["wide"]
