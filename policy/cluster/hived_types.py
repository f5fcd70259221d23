"""HiveD's cell types: the levels of each chain.

A type names its child type; a name that is no type itself is a leaf type, one device. The types are
valid only if no type contains itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policy.cluster.document import MAX_LEVELS
from policy.cluster.fields import check_child_count, check_flag, text_of
from policy.documents.models import mapping_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.topology import CellTypeName, Level
from policy.wording import join_path, quote

TYPES_PATH: Final = ("physicalCluster", "cellTypes")
_SHOWN_TYPES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CellType:
    """One entry of `cellTypes`."""

    name: str
    child: str
    child_count: int
    is_node: bool


@dataclass(slots=True)
class CellTypes:
    """All types that could be read, by name."""

    known: Mapping[str, CellType]
    unusable: frozenset[str]
    """Types with problems: reported by the models, or part of a cycle."""
    problems: list[Problem]
    _ladders: dict[str, tuple[Level, ...] | None] = field(default_factory=dict)

    def is_type(self, name: str) -> bool:
        """Whether it is listed in `cellTypes`."""
        return name in self.known or name in self.unusable

    def ladder(self, top: str) -> tuple[Level, ...] | None:
        """Return the levels of a chain, leaf first; None if its types have problems."""
        if top not in self._ladders:
            self._ladders[top] = self._build_ladder(top)
        return self._ladders[top]

    def _build_ladder(self, top: str) -> tuple[Level, ...] | None:
        rungs = [self.known[top]] if top in self.known else []
        while rungs and rungs[-1].child in self.known and len(rungs) < MAX_LEVELS:
            rungs.append(self.known[rungs[-1].child])
        if not rungs or rungs[-1].child in self.unusable:
            return None
        problems = list(_ladder_problems(top, rungs))
        self.problems += problems
        return None if problems else _levels(rungs)


def read_types(cluster: Mapping[str, Plain]) -> CellTypes:
    """Read the types of a `physicalCluster`, and find cycles."""
    known: dict[str, CellType] = {}
    unusable: list[str] = []
    for name, entry in mapping_of(cluster.get("cellTypes")).items():
        cell_type = _read_type(name, mapping_of(entry))
        if cell_type is None:
            unusable.append(name)
        else:
            known[name] = cell_type
    problems: list[Problem] = []
    for cycle in _cycles(known):
        problems.append(_cycle_problem(cycle))
        unusable += cycle
        for name in cycle:
            del known[name]
    return CellTypes(known=known, unusable=frozenset(unusable), problems=problems)


def _read_type(name: str, entry: Mapping[str, Plain]) -> CellType | None:
    try:
        count = check_child_count(entry.get("childCellNumber"))
        is_node = check_flag(entry.get("isNodeLevel"))
    except ValueError:
        return None
    child = text_of(entry, "childCellType")
    return CellType(name=name, child=child, child_count=count, is_node=is_node) if child else None


def _cycles(types: Mapping[str, CellType]) -> list[list[str]]:
    """Return the types of each cycle, in order; every type is visited once."""
    found: list[list[str]] = []
    seen: dict[str, str] = {}
    for start in types:
        walk: list[str] = []
        name = start
        while name in types and name not in seen:
            seen[name] = start
            walk.append(name)
            name = types[name].child
        if seen.get(name) == start and name in walk:
            found.append(walk[walk.index(name) :])
    return found


def _cycle_problem(cycle: list[str]) -> Problem:
    shown = [quote(name) for name in [*cycle, cycle[0]]]
    if len(shown) > _SHOWN_TYPES:
        shown = [*shown[: _SHOWN_TYPES - 1], "…", shown[-1]]
    path = join_path((*TYPES_PATH, cycle[0], "childCellType"))
    return Problem(path, f"the types form a cycle: {' → '.join(shown)}")


def _ladder_problems(top: str, rungs: list[CellType]) -> Iterator[Problem]:
    if len(rungs) >= MAX_LEVELS:
        path = join_path((*TYPES_PATH, top))
        yield Problem(path, f"has more than {MAX_LEVELS} levels")
        return
    nodes = [rung.name for rung in rungs if rung.is_node]
    if not nodes:
        chain = " → ".join(
            quote(name) for name in [*(rung.name for rung in rungs), rungs[-1].child]
        )
        what = "is the type of a top cell, but no type in it is marked isNodeLevel"
        yield Problem(join_path((*TYPES_PATH, top)), f"{what}: {chain}")
    elif len(nodes) > 1:
        path = join_path((*TYPES_PATH, nodes[0], "isNodeLevel"))
        what = f"{quote(nodes[1])} inside it is node level too"
        yield Problem(path, f"{what}; a cell lies in exactly one node")


def _levels(rungs: list[CellType]) -> tuple[Level, ...]:
    leaf = CellTypeName(rungs[-1].child)
    levels = [Level(level=1, cell_type=leaf, child_count=0, leaf_count=1, is_node=False)]
    for rung in reversed(rungs):
        below = levels[-1]
        level = Level(
            level=below.level + 1,
            cell_type=CellTypeName(rung.name),
            child_count=rung.child_count,
            leaf_count=below.leaf_count * rung.child_count,
            is_node=rung.is_node,
        )
        levels.append(level)
    return tuple(levels)
