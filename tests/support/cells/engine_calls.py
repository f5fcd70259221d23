"""Calls of the engine in one step, for tests: the product runs them step by step."""

from collections.abc import Sequence

from extender.cells.engine import Engine
from extender.cells.model import ForeignPod, MemberRequest, NodeCell, PlacedMember
from extender.cells.views.listings import Holders, run_to_end
from extender.cells.views.state_views import CellView, VcView
from policy.placement import Placement
from policy.submission import NodeName, PodUid, VcName


def check(engine: Engine) -> None:
    """Check every invariant."""
    run_to_end(engine.check_stepwise())


def list_nodes(engine: Engine) -> list[tuple[NodeCell, Holders]]:
    """All nodes with the holders of their leaf cells, by name."""
    return run_to_end(engine.nodes_stepwise())


def list_cells(engine: Engine) -> list[CellView]:
    """All physical cells, as trees."""
    return run_to_end(engine.cells_stepwise())


def list_vcs(engine: Engine) -> dict[VcName, VcView]:
    """All VCs with their preassigned cells."""
    return run_to_end(engine.vcs_stepwise())


def recover(
    engine: Engine,
    running: Sequence[PlacedMember],
    *,
    released: Sequence[PlacedMember] = (),
    now: float = 0.0,
) -> list[PodUid]:
    """Take in all bound and all released pods after a restart."""
    return run_to_end(engine.recover_stepwise(running, released=released, now=now))


def observe_bound(
    engine: Engine,
    request: MemberRequest,
    *,
    node: NodeName,
    leaf_cells: tuple[int, ...],
    placement: Placement | None = None,
) -> None:
    """Take in a bound pod with a whole placement, or with a node and leaf cells only."""
    whole = placement or Placement(node=node, leaf_cells=leaf_cells)
    engine.observe_bound(PlacedMember(request=request, placement=whole))


def observe_foreign(
    engine: Engine, request: MemberRequest, *, node: str, is_protected: bool = False
) -> None:
    """Take in a bound pod of alice that the engine did not place."""
    pod = ForeignPod(name=f"ns/{request.member}", owner="alice", is_protected=is_protected)
    where = Placement(node=NodeName(node), leaf_cells=())
    engine.observe_bound(PlacedMember(request=request, placement=where, foreign=pod))
