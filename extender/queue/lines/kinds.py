"""Lines that differ in sizes and run time only: where a gang does not fit, no larger one does.

A line holds the waiting gangs of one shape. Lines of one kind sleep and wake together.
"""

from dataclasses import dataclass, field
from math import inf
from operator import ge

from extender.cells.model import OPPORTUNISTIC, MemberRequest
from extender.queue.lines.gang_places import Place
from extender.queue.lines.shapes import GangShape, ShapeKind
from policy.queues.pools import Pool

Sizes = tuple[int, ...]


@dataclass(slots=True, eq=False)
class Line:
    """All waiting gangs of one shape, best rank first."""

    shape: GangShape
    kind: "LineKind"
    places: list[Place] = field(default_factory=list)
    is_refused: bool = False
    leaf_cells: int = 0
    """What each of its gangs asks for in total."""

    def __post_init__(self) -> None:
        self.leaf_cells = sum(self.shape.sizes)

    @property
    def may_fit(self) -> bool:
        """Whether neither it nor a line that asks for no more was refused."""
        if not self.places or self.is_refused or self.leaf_cells >= self.kind.too_many:
            return False
        return not self.kind.rules_out(self.shape)


@dataclass(slots=True, eq=False)
class LineKind:
    """All lines of one kind, and what did not fit of them since they last woke."""

    key: ShapeKind
    pool: Pool
    """The pool of all its gangs."""
    other_pools: tuple[Pool, ...] = ()
    """The pools of their alternatives."""
    lines: dict[GangShape, Line] = field(default_factory=dict)
    too_many: float = inf
    """So many leaf cells are certainly not to be had, on whatever nodes."""
    _refused: dict[tuple[Sizes, int], None] = field(default_factory=dict)

    @property
    def request(self) -> MemberRequest:
        """What all its gangs ask for, without names and sizes."""
        return self.key[0]

    @property
    def is_opportunistic(self) -> bool:
        """Whether its gangs use what is idle."""
        return self.request.priority == OPPORTUNISTIC

    def refuse(self, line: Line, *, fits_no_gap: bool = False) -> None:
        """Note that a line does not fit: at all, or only no gap that is as short as there is."""
        line.is_refused = True
        if not self.rules_out(line.shape):
            run = line.shape.run if fits_no_gap else 0
            self._refused[line.shape.sizes, run] = None

    def rule_out(self, line: Line) -> None:
        """Note that there are too few leaf cells for a line, and for all that ask for as many."""
        line.is_refused = True
        self.too_many = min(self.too_many, line.leaf_cells)

    def wake(self) -> None:
        """Forget what did not fit."""
        self.too_many = inf
        self._refused.clear()
        for line in self.lines.values():
            line.is_refused = False

    def rules_out(self, shape: GangShape) -> bool:
        """Tell whether a shape of this kind was refused that asks for no more than this one.

        A gang that may start with its smallest members is compared with equal ones only.
        """
        own, longest = shape.sizes, shape.run
        if shape.is_incremental:
            return any(longest >= run for sizes, run in self._refused if sizes == own)
        for sizes, run in self._refused:  # hundreds of lines are asked about after each event
            if longest >= run and len(own) >= len(sizes) and all(map(ge, own, sizes)):
                return True
        return False
