"""Requests that can never be served, and why."""

from collections.abc import Iterable
from dataclasses import replace

from extender.cells.budget import LARGEST_GANG
from extender.cells.decide.wording import counted, mismatch, reject
from extender.cells.model import (
    HIGHEST_PRIORITY,
    OPPORTUNISTIC,
    MemberRequest,
    ReasonCode,
    Reject,
)
from extender.cells.state.allocation_table import AllocationTable
from extender.cells.state.placed_gangs import PlacedGang
from policy.topology import ChainName

_MIXED = (
    "; members of different sizes must all list all of them, as HiveD's annotation does "
    "(affinityGroup.members)"
)


def refusal(
    table: AllocationTable, request: MemberRequest, gang: PlacedGang | None
) -> Reject | None:
    """Say what is wrong with a request, or None."""
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
    return reject(
        request,
        ReasonCode.BAD_PRIORITY,
        f"gang {request.gang} asks for priority {request.priority}",
        f"use {OPPORTUNISTIC} (opportunistic) to {HIGHEST_PRIORITY}",
    )


def _refusal_of_sizes(request: MemberRequest) -> Reject | None:
    counts = request.gang_leaf_counts
    if len(counts) > LARGEST_GANG:
        return reject(
            request,
            ReasonCode.TOO_LARGE,
            f"gang {request.gang} has {len(counts)} members, and {LARGEST_GANG} are the most",
            "split it into several gangs",
        )
    if not counts:
        return reject(
            request,
            ReasonCode.BAD_LEAF_COUNT,
            f"gang {request.gang} lists no members",
            "list the leaf cells of every member",
        )
    if min(counts) < 1:
        return reject(
            request,
            ReasonCode.BAD_LEAF_COUNT,
            f"gang {request.gang} has a member of {min(counts)} leaf cells",
            "every member needs at least 1",
        )
    if request.leaf_count in counts:
        return None
    return reject(
        request,
        ReasonCode.GANG_MISMATCH,
        f"gang {request.gang} has members of {counted(counts)} leaf cells, and this pod asks for "
        f"{request.leaf_count}",
        "list this pod's leaf cells among the gang's members",
    )


def _refusal_of_min(request: MemberRequest) -> Reject | None:
    size = len(request.gang_leaf_counts)
    if request.gang_min is None or 1 <= request.gang_min <= size:
        return None
    return reject(
        request,
        ReasonCode.BAD_GANG_MIN,
        f"gang {request.gang} has {size} members and says that {request.gang_min} are enough to "
        "start",
        f"use 1 to {size}",
    )


def _mismatch(request: MemberRequest, gang: PlacedGang) -> Reject | None:
    """Members must agree: else a stranger could take a place in somebody else's gang."""
    first = gang.request
    mine = (request.vc, request.priority, request.pinned, request.leaf_type, request.gang_min)
    theirs = (first.vc, first.priority, first.pinned, first.leaf_type, first.gang_min)
    is_alike = _are_equal(request.gang_leaf_counts, first.gang_leaf_counts)
    if mine == theirs and is_alike:
        return None
    said = zip(_common(first), _common(request), strict=True)
    hint = "" if is_alike else _MIXED
    return mismatch(request, [pair for pair in said if pair[0] != pair[1]], hint)


def _are_equal(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return one == other or sorted(one) == sorted(other)


def _common(request: MemberRequest) -> tuple[str, ...]:
    """What all members of a gang must say alike."""
    counts = counted(request.gang_leaf_counts)
    is_whole = request.gang_min is None
    return (
        f"VC {request.vc}",
        f"priority {request.priority}",
        f"pinned cell {request.pinned}" if request.pinned else "no pinned cell",
        f"leaf type {request.leaf_type}" if request.leaf_type else "any leaf type",
        f"members of {counts} leaf cells",
        "all needed to start" if is_whole else f"{request.gang_min} needed to start",
    )


def _refusal_of_vc(table: AllocationTable, request: MemberRequest) -> Reject | None:
    vc = table.vcs.get(request.vc)
    if vc is None:
        return reject(
            request,
            ReasonCode.UNKNOWN_VC,
            f"gang {request.gang} asks for VC {request.vc}, which does not exist",
            _one_of(table.vcs) or "add VCs to the cluster: there are none",
        )
    if request.pinned is not None and request.priority == OPPORTUNISTIC:
        return reject(
            request,
            ReasonCode.OPPORTUNISTIC_PINNED,
            f"gang {request.gang} is opportunistic and asks for pinned cell {request.pinned}",
            "ask for no pinned cell, or for a guaranteed priority",
        )
    if request.pinned is not None:
        if request.pinned in vc.pinned_rankings:
            return None
        return reject(
            request,
            ReasonCode.UNKNOWN_PINNED_CELL,
            f"gang {request.gang} asks for pinned cell {request.pinned}, which VC {request.vc} "
            "does not have",
            _one_of(vc.pinned_rankings) or "ask for none: the VC has no pinned cells",
        )
    return _refusal_of_type(table, request)


def _refusal_of_type(table: AllocationTable, request: MemberRequest) -> Reject | None:
    if request.leaf_type is None or chains_of(table, request):
        return None
    is_known = request.leaf_type in {tree.leaf_type for tree in table.trees.values()}
    where = f"VC {request.vc}" if is_known else "the cluster"
    usable = chains_of(table, replace(request, leaf_type=None))
    types = {str(table.trees[chain].leaf_type) for chain in usable}
    return reject(
        request,
        ReasonCode.UNKNOWN_LEAF_TYPE,
        f"gang {request.gang} asks for leaf cells of type {request.leaf_type}, which {where} does "
        "not have",
        _one_of(types) or "ask for a pinned cell: the VC has no others",
    )


def _one_of(names: Iterable[str]) -> str:
    found = ", ".join(sorted(names))
    return f"use one of {found}" if found else ""


def chains_of(table: AllocationTable, request: MemberRequest) -> list[ChainName]:
    """The chains where a request may be served, those of small cells first."""
    vc = table.vcs.get(request.vc)
    if request.pinned is not None and vc is not None:
        return [vc.pinned_rankings[request.pinned].root.chain.name]
    names = [
        name
        for name, tree in table.trees.items()
        if request.leaf_type is None or tree.leaf_type == request.leaf_type
    ]
    if request.priority != OPPORTUNISTIC and vc is not None:
        names = [name for name in names if name in vc.rankings]
    if len(names) < 2:
        return names
    return sorted(names, key=lambda name: (table.trees[name].levels[-1].leaf_count, name))
