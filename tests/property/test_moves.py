"""Moves that are found can be made: the gang fits, and each moved gang fits elsewhere."""

from hypothesis import given
from hypothesis import strategies as st

from extender.cells.model import MovableGang, Moves, Place, Wait
from policy.submission import GangKey
from tests.support.cells.builders import GangBuilder, a_cluster, a_gang
from tests.support.cells.engine_calls import check, list_cells
from tests.support.cells.engine_world import EngineWorld

GANGS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=2),
        st.sampled_from([-1, -1, -1, 0]),
        st.booleans(),
        st.integers(0, 50),
    ),
    min_size=4,
    max_size=14,
)


class Fragmented:
    """Gangs come, and some of them leave: idle leaf cells are spread over the nodes."""

    def __init__(self, gangs: list[tuple[list[int], int, bool, int]]) -> None:
        self.world = EngineWorld(a_cluster("2 racks x 2 nodes x 4").promising("a", node=1))
        self.costs: dict[GangKey, int] = {}
        """The opportunistic gangs that stay, and what it costs to move each."""
        self.built: dict[GangKey, GangBuilder] = {}
        for index, (sizes, priority, _, cost) in enumerate(gangs):
            self._come(a_gang(f"g{index}").of(*sizes).at(priority), cost)
        for index, (_, _, leaves, _) in enumerate(gangs):
            if leaves:
                self.costs.pop(GangKey("ns", f"g{index}"), None)
                self.end(GangKey("ns", f"g{index}"))

    def _come(self, gang: GangBuilder, cost: int) -> None:
        if isinstance(self.world.ask(gang), Place):
            self.world.place(gang)
            self.built[gang.request.gang] = gang
            if gang.request.priority < 0:
                self.costs[gang.request.gang] = cost

    def end(self, key: GangKey) -> None:
        for member in self.built[key].members() if key in self.built else ():
            self.world.engine.forget_member(member.member)

    def moves(self, large: GangBuilder, *, most: int) -> Moves | None:
        engine, nodes = self.world.engine, self.world.nodes
        movable = [
            MovableGang(gang=key, cost=cost, nodes=nodes) for key, cost in self.costs.items()
        ]
        before = list_cells(engine)
        moves = engine.moves(
            next(iter(large.members())), movable=movable, most_cost=most, candidate_nodes=nodes
        )
        assert list_cells(engine) == before
        check(engine)
        return moves


@given(
    gangs=GANGS,
    wanted=st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=2),
    most=st.sampled_from([0, 30, 1000]),
)
def test_moves_that_are_found_can_be_made(
    gangs: list[tuple[list[int], int, bool, int]], wanted: list[int], most: int
) -> None:
    there, large = Fragmented(gangs), a_gang("large").of(*wanted).at(-1)
    moves = there.moves(large, most=most)
    if moves is None:
        return
    assert isinstance(there.world.ask(large), Wait), "it did not fit without"
    assert moves.cost == sum(there.costs[key] for key in moves.gangs) <= most
    for key in moves.gangs:
        there.end(key)
    there.world.place(large)
    moved = [there.built[key] for key in moves.gangs]
    for gang in sorted(moved, key=lambda one: -sum(m.leaf_count for m in one.members())):
        there.world.place(gang)
