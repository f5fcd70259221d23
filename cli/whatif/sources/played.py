"""What a source gives: the arrivals, and what they met if that is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass

from kube.read.nodes import KubeNode
from policy.store import PolicyText
from timemachine.model import Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Gangs in the order of their submission, and the cluster and policies that they met."""

    source: str
    """Where the arrivals are from, in words."""
    arrivals: Sequence[Arrival]
    texts: Sequence[PolicyText] = ()
    """The documents that were in force."""
    nodes: Sequence[KubeNode] = ()
    """The nodes that were seen, sorted by name."""
    notes: Sequence[str] = ()
    """What the simulation cannot know because of this source, in words."""
    mean_wait: float | None = None
    """How long the gangs that count and started waited in reality, on average."""
    warnings: Sequence[str] = ()
    """What is strange about the source, for the person who gave it."""


def in_order(arrivals: list[Arrival]) -> list[Arrival]:
    """Sort arrivals as they were submitted; equal times by name."""
    return sorted(arrivals, key=lambda one: (one.submitted, one.gang))


def divide(leaf_cells: int, *, members: int = 0, node_leaf_cells: int = 0) -> tuple[int, ...]:
    """Divide a gang into members as equal as possible, or into whole nodes and a rest."""
    if members:
        each, more = divmod(leaf_cells, members)
        return (each + 1,) * more + (each,) * (members - more)
    whole, rest = divmod(leaf_cells, node_leaf_cells)
    return (node_leaf_cells,) * whole + (rest,) * (rest > 0)
