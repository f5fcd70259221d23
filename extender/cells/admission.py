"""Requests that can never be served, and why."""

from extender.cells.gangs import Gang
from extender.cells.model import (
    HIGHEST_PRIORITY,
    OPPORTUNISTIC,
    MemberRequest,
    ReasonCode,
    Reject,
)
from extender.cells.table import Table
from extender.cells.wording import reject
from policy.topology import ChainName


def refusal(table: Table, request: MemberRequest, gang: Gang | None) -> Reject | None:
    """Say what is wrong with a request, or None."""
    if gang is not None:
        return _mismatch(request, gang)
    if not OPPORTUNISTIC <= request.priority <= HIGHEST_PRIORITY:
        return reject(
            request,
            ReasonCode.BAD_PRIORITY,
            f"gang {request.gang} asks for priority {request.priority}",
            f"use {OPPORTUNISTIC} (opportunistic) to {HIGHEST_PRIORITY}",
        )
    if request.leaf_count not in request.gang_leaf_counts:
        return reject(
            request,
            ReasonCode.GANG_MISMATCH,
            f"gang {request.gang} has no members of {request.leaf_count} leaf cells",
            "list this member's size among the gang's members",
        )
    return None if table.is_open else _refusal_of_vc(table, request)


def _mismatch(request: MemberRequest, gang: Gang) -> Reject | None:
    """Members must agree: else a stranger could take a place in somebody else's gang."""
    first = gang.request
    mine = (request.vc, request.priority, request.pinned, request.leaf_type)
    theirs = (first.vc, first.priority, first.pinned, first.leaf_type)
    if mine == theirs and sorted(request.gang_leaf_counts) == sorted(first.gang_leaf_counts):
        return None
    return reject(
        request,
        ReasonCode.GANG_MISMATCH,
        f"gang {request.gang} runs in VC {first.vc} at priority {first.priority} with "
        f"{len(first.gang_leaf_counts)} members, and this pod says otherwise",
        "all members of a gang must agree",
    )


def _refusal_of_vc(table: Table, request: MemberRequest) -> Reject | None:
    vc = table.vcs.get(request.vc)
    if vc is None:
        known = ", ".join(sorted(table.vcs))
        return reject(
            request, ReasonCode.UNKNOWN_VC, f"VC {request.vc} does not exist", f"use one of {known}"
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
            f"VC {request.vc} has no pinned cell {request.pinned}",
            f"it has {', '.join(sorted(vc.pinned_rankings)) or 'none'}",
        )
    return _refusal_of_type(table, request)


def _refusal_of_type(table: Table, request: MemberRequest) -> Reject | None:
    if request.leaf_type is None or chains_of(table, request):
        return None
    types = sorted({str(tree.leaf_type) for tree in table.trees.values()})
    where = "the cluster" if request.leaf_type not in types else f"VC {request.vc}"
    return reject(
        request,
        ReasonCode.UNKNOWN_LEAF_TYPE,
        f"{where} has no leaf cells of type {request.leaf_type}",
        f"ask for one of {', '.join(types)} that the VC was promised",
    )


def chains_of(table: Table, request: MemberRequest) -> list[ChainName]:
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
    return sorted(names, key=lambda name: (table.trees[name].levels[-1].leaf_count, name))
