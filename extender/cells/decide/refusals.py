"""Checks of a request that can never be satisfied as it is."""

from dataclasses import replace

from extender.cells.answers import counted, disagreement, listed, reject, terms
from extender.cells.budget import LARGEST_GANG
from extender.cells.fit.chain_choice import chains_of
from extender.cells.model import (
    HIGHEST_PRIORITY,
    OPPORTUNISTIC,
    MemberRequest,
    ReasonCode,
    Reject,
)
from extender.cells.phrases import MEMBER_SIZES, count_sizes, sizes_text
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang


def refusal(
    table: AllocationTable, request: MemberRequest, gang: PlacedGang | None
) -> Reject | None:
    """Return the rejection of an invalid request, or None."""
    if gang is not None:
        return _mismatch(request, gang)
    checks = [_refusal_of_priority, _refusal_of_sizes, _refusal_of_min]
    for check in checks:
        refused = check(request)
        if refused is not None:
            return refused
    return None if table.is_open else _refusal_of_vc(table, request)


def _refusal_of_priority(request: MemberRequest) -> Reject | None:
    if OPPORTUNISTIC <= request.priority <= HIGHEST_PRIORITY:
        return None
    told = {"priority": request.priority, "lowest": OPPORTUNISTIC, "highest": HIGHEST_PRIORITY}
    return reject(request, ReasonCode.BAD_PRIORITY, **told)


def _refusal_of_sizes(request: MemberRequest) -> Reject | None:
    counts = request.gang_leaf_counts
    if len(counts) > LARGEST_GANG:
        return reject(request, ReasonCode.TOO_LARGE, size=len(counts), limit=LARGEST_GANG)
    if not counts:
        return reject(request, ReasonCode.BAD_LEAF_COUNT)
    if min(counts) < 1:
        return reject(request, ReasonCode.BAD_LEAF_COUNT, member=min(counts))
    if request.leaf_count in counts:
        return None
    return reject(request, ReasonCode.GANG_MISMATCH, **counted(counts), member=request.leaf_count)


def _refusal_of_min(request: MemberRequest) -> Reject | None:
    size = len(request.gang_leaf_counts)
    if request.gang_min is None or 1 <= request.gang_min <= size:
        return None
    return reject(request, ReasonCode.BAD_GANG_MIN, size=size, minimum=request.gang_min)


def _mismatch(request: MemberRequest, gang: PlacedGang) -> Reject | None:
    """Reject a member that disagrees with its gang: it could take the place of a real member."""
    first = gang.request
    sizes, listed_sizes = request.gang_leaf_counts, first.gang_leaf_counts
    are_equal = sizes == listed_sizes or sorted(sizes) == sorted(listed_sizes)
    if are_equal and terms(request) == terms(first):
        return None
    return disagreement(request, first=_all_terms(first), own=_all_terms(request))


def _all_terms(request: MemberRequest) -> dict[str, int | str | None]:
    counts = request.gang_leaf_counts
    return {**terms(request), MEMBER_SIZES: sizes_text(count_sizes(counts), len(counts))}


def _refusal_of_vc(table: AllocationTable, request: MemberRequest) -> Reject | None:
    vc = table.vcs.get(request.vc)
    if vc is None:
        return reject(
            request, ReasonCode.UNKNOWN_VC, vc=request.vc, **listed("choices", sorted(table.vcs))
        )
    if request.pinned is not None and request.priority == OPPORTUNISTIC:
        return reject(request, ReasonCode.OPPORTUNISTIC_PINNED, pinned=request.pinned)
    if request.pinned is not None:
        if request.pinned in vc.pinned_rankings:
            return None
        told = {"vc": request.vc, "pinned": request.pinned}
        choices = listed("choices", sorted(vc.pinned_rankings))
        return reject(request, ReasonCode.UNKNOWN_PINNED_CELL, **told, **choices)
    return _refusal_of_type(table, request)


def _refusal_of_type(table: AllocationTable, request: MemberRequest) -> Reject | None:
    if request.leaf_type is None or chains_of(table, request):
        return None
    is_known = request.leaf_type in {tree.leaf_type for tree in table.trees.values()}
    usable = chains_of(table, replace(request, leaf_type=None))
    types = {str(table.trees[chain].leaf_type) for chain in usable}
    return reject(
        request,
        ReasonCode.UNKNOWN_LEAF_TYPE,
        leaf_type=request.leaf_type,
        vc=request.vc if is_known else None,
        **listed("choices", sorted(types)),
    )
