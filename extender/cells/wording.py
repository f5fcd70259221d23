"""Sentences for people, each made from a reason's code and its arguments alone.

A sentence says what is the case and what would change it. Equal states give equal texts: a text
that varies would make kube-scheduler retry without end.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.cells import end_sentences, queue_sentences
from extender.cells.model import Argument, Reason, ReasonCode
from extender.cells.phrases import (
    MEMBER_SIZES,
    Needs,
    Sentence,
    Writer,
    among_chains,
    each_member,
    in_a_cut_vc,
    names_text,
    needs_text,
    one_of,
    owner_text,
    sizes_text,
)
from policy.pod_resources import shortage_texts
from policy.wording import are, count_of, listing

WORDING: Final = 8
"""Version of the sentences below. Raise it whenever a text changes: within one version, a replay
compares texts, too."""

ForeignUse = tuple[str, str, str, int]
"""A pod, its owner, its node, and the number of leaf cells that it uses there."""


def explain(code: ReasonCode, **arguments: Argument) -> Reason:
    """Make the reason that a code and its arguments are."""
    write = next(write for name, write in _SENTENCES[code].items() if name in arguments)
    fact, change = write(**arguments)
    return Reason(code=code, arguments=arguments, text=f"{fact}; {change}", change=change)


# -- reasons to wait


def _no_room(*, gang: str, needs: Needs, members: int, room: int, leaf_type: str = "") -> Sentence:
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}"
        f"{each_member(members, 'on one node')}; "
        f"room for {room} of {count_of(members, 'member')} now",
        "starts once enough leaf cells are free",
    )


def _no_room_by_foreign(
    *,
    gang: str,
    needs: Needs,
    members: int,
    room: int,
    pods: Sequence[ForeignUse],
    count: int,
    used: int,
    leaf_type: str = "",
) -> Sentence:
    fact, change = _no_room(gang=gang, needs=needs, members=members, room=room, leaf_type=leaf_type)
    by_foreign = (
        f"{used} of the leaf cells that it could use {are(used)} in use by "
        f"{count_of(count, 'pod')} that Cellgate did not place: {_foreign_text(pods, count)}"
    )
    return f"{fact}; {by_foreign}", f"{change}; an admin can end these pods"


def _vc_full(
    *,
    gang: str,
    needs: Needs,
    members: int,
    vc: str,
    promised: int,
    unused: int,
    pinned: str = "",
    leaf_type: str = "",
) -> Sentence:
    where = f"in one {'node' if pinned else 'cell'} of {owner_text(vc, pinned)}"
    share = f"of pinned cell {pinned}" if pinned else f"promised to VC {vc}"
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}{each_member(members, where)}; "
        f"{unused} of the {promised} leaf cells {share} {are(unused)} unused",
        f"starts once other gangs of VC {vc} have ended, or with a higher priority than theirs",
    )


def _vc_full_or_empty(*, gang: str, vc: str, promised: int, **told: Any) -> Sentence:  # noqa: ANN401
    if promised:
        return _vc_full(gang=gang, vc=vc, promised=promised, **told)
    return (
        f"gang {gang} has a guaranteed class, but VC {vc} was promised no leaf cells",
        "use an opportunistic class, or another VC (label `cellgate.io/vc`)",
    )


def _bad_cells(
    *,
    gang: str,
    needs: Needs,
    members: int,
    bad: int,
    nodes: Sequence[str],
    quarantined: Sequence[str],
    count: int,
    leaf_type: str = "",
) -> Sentence:
    named = [f"{node} (in quarantine)" if node in quarantined else node for node in nodes]
    on_nodes = f"node{'' if count == 1 else 's'} {names_text(named, count)}"
    ended = (
        "; an admin ends a quarantine by removing the annotation `cellgate.io/quarantine`"
        if quarantined
        else ""
    )
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; {bad} of the leaf cells that "
        f"it could use {are(bad)} bad, on {on_nodes}",
        f"starts once these nodes are healthy again or other gangs have ended{ended}",
    )


def _foreign_text(pods: Sequence[ForeignUse], count: int) -> str:
    named = [
        f"{pod} of {owner} on node {node} ({leaf_cells})" for pod, owner, node, leaf_cells in pods
    ]
    return names_text(named, count)


def _foreign_use(
    *,
    gang: str,
    needs: Needs,
    members: int,
    pods: Sequence[ForeignUse],
    count: int,
    used: int,
    bad: int,
    leaf_type: str = "",
) -> Sentence:
    also_bad = f", and {bad} {are(bad)} bad" if bad else ""
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; {used} of the leaf cells "
        f"that it could use {are(used)} in use by {count_of(count, 'pod')} that Cellgate did not "
        f"place{also_bad}: {_foreign_text(pods, count)}",
        "starts once enough of these leaf cells are free; an admin can end these pods, and with "
        "`foreign: reclaim` in the Cluster document Cellgate ends those that it may end",
    )


def _place_not_offered(*, gang: str, node: str) -> Sentence:
    return (
        f"gang {gang} has a place on node {node}, but kube-scheduler does not offer this node to "
        "the pod",
        "check the node's taints and the pod's node selector",
    )


def _room_not_offered(*, gang: str, needs: Needs, members: int, leaf_type: str = "") -> Sentence:
    # The number of offered nodes is left out: kube-scheduler offers a sample, the text would vary.
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; there is room, but not on "
        "nodes that its pods may use now",
        "check the pods' node selectors, affinity and tolerations, and the nodes' free CPU and "
        "memory",
    )


def _lacks_resources(
    *, gang: str, needs: Needs, members: int, leaf_type: str = "", **facts: int | str
) -> Sentence:
    each, lack = shortage_texts(**facts)
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}{each}; there are leaf cells "
        f"for it, but {lack}",
        "starts once pods on these nodes have ended, or with smaller requests",
    )


def _gang_too_large(
    *,
    gang: str,
    needs: Needs,
    members: int,
    total: int,
    limit: int,
    vc: str = "",
    pinned: str = "",
    leaf_type: str = "",
) -> Sentence:
    where = f"of {owner_text(vc, pinned)}" if vc else "of the cluster"
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}, {total} in total; one gang "
        f"can use at most {limit} {where}",
        "starts once it is smaller or "
        + (f"VC {vc} is promised more cells" if vc else "nodes are added"),
    )


def _member_too_large(
    *, gang: str, member: int, limit: int, vc: str = "", pinned: str = ""
) -> Sentence:
    largest = f"cell of {owner_text(vc, pinned)} within one node" if vc else "node"
    return (
        f"gang {gang} has a member with {count_of(member, 'leaf cell')}; the largest {largest} has "
        f"{limit}",
        "starts once its members are smaller or larger "
        + ("cells are promised" if vc else "nodes are added"),
    )


def _search_ended(*, gang: str, needs: Needs, members: int, leaf_type: str = "") -> Sentence:
    equal = " or equal members" if len(needs) > 1 else ""
    easier = f"; a smaller gang{equal} would need fewer steps" if members > 1 else ""
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; the search reached its step "
        "limit without finding a place, although one may exist",
        f"starts once more leaf cells are free{easier}",
    )


def _gang_full(*, gang: str, members: int, leaf_cells: int) -> Sentence:
    all_members = "its only member" if members == 1 else f"all of its {members} members"
    return (
        f"gang {gang} already has {all_members} with {count_of(leaf_cells, 'leaf cell')}",
        "starts once a member has ended; check `cellgate.io/gang-size`",
    )


def _members_ending(*, gang: str, members: int) -> Sentence:
    pods, are = ("pod", "is") if members == 1 else ("pods", "are")
    return (
        f"gang {gang} still has {members} earlier {pods} that {are} terminating",
        f"starts once {'it has' if members == 1 else 'they have'} ended",
    )


# -- requests that can never be served


def _too_many_members(*, gang: str, size: int, limit: int) -> Sentence:
    return (f"gang {gang} has {size} members; the limit is {limit}", "split it into several gangs")


def _no_members(*, gang: str) -> Sentence:
    return (f"gang {gang} lists no members", "list the leaf cells of every member")


def _member_too_small(*, gang: str, member: int) -> Sentence:
    return (f"gang {gang} has a member with {member} leaf cells", "every member needs at least 1")


def _bad_priority(*, gang: str, priority: int, lowest: int, highest: int) -> Sentence:
    return (
        f"gang {gang} asks for priority {priority}",
        f"use a priority from {lowest} (opportunistic) to {highest}",
    )


def _bad_gang_min(*, gang: str, size: int, minimum: int) -> Sentence:
    return (
        f"gang {gang} has {count_of(size, 'member')}, but needs at least {minimum} to start",
        f"use a minimum from 1 to {size}",
    )


def _opportunistic_pinned(*, gang: str, pinned: str) -> Sentence:
    return (
        f"gang {gang} is opportunistic and asks for pinned cell {pinned}",
        "use a guaranteed priority, or ask for no pinned cell",
    )


def _unknown_vc(*, gang: str, vc: str, choices: Sequence[str], count: int) -> Sentence:
    return (
        f"gang {gang} asks for VC {vc}, which does not exist",
        one_of(choices, count, otherwise="the cluster document has no VCs: add one"),
    )


def _unknown_pinned_cell(
    *, gang: str, vc: str, pinned: str, choices: Sequence[str], count: int
) -> Sentence:
    return (
        f"gang {gang} asks for pinned cell {pinned}, which VC {vc} does not have",
        one_of(choices, count, otherwise="ask for no pinned cell: the VC has none"),
    )


def _unknown_leaf_type(
    *, gang: str, leaf_type: str, choices: Sequence[str], count: int, vc: str = ""
) -> Sentence:
    where = f"VC {vc}" if vc else "the cluster"
    return (
        f"gang {gang} asks for leaf cells of type {leaf_type}, which {where} does not have",
        one_of(choices, count, otherwise="ask for a pinned cell: the VC has no other cells"),
    )


def _member_not_listed(*, gang: str, needs: Needs, members: int, member: int) -> Sentence:
    return (
        f"gang {gang} lists members with {sizes_text(needs, members)} leaf cells; this pod asks "
        f"for {member}",
        "list this pod's leaf cells among the gang's members",
    )


def _disagreement(*, gang: str, differences: Sequence[tuple[str, str, str]]) -> Sentence:
    first = listing([f"{name} {value}" for name, value, _ in differences])
    own = listing([f"{name} {value}" for name, _, value in differences])
    sizes = any(name == MEMBER_SIZES for name, _, _ in differences)
    hint = "; if members differ in size, list all of them in HiveD's annotation" if sizes else ""
    return (
        f"a member of gang {gang} has {own}, but the first member has {first}",
        f"use the same values for all members, or another gang name for this one{hint}",
    )


def _member_of_another_gang(*, gang: str, uid: str, known: str) -> Sentence:
    return (
        f"the pod with UID {uid} asks for gang {gang}, but is a member of gang {known}",
        "create another pod: a pod cannot change its gang",
    )


_SENTENCES: Final[Mapping[ReasonCode, Mapping[str, Writer]]] = {
    ReasonCode.NO_ROOM: {"pods": _no_room_by_foreign, "gang": _no_room},
    ReasonCode.VC_FULL: {
        "shortfall": in_a_cut_vc(among_chains(_vc_full)),
        "gang": among_chains(_vc_full_or_empty),
    },
    ReasonCode.BAD_CELLS: {"gang": _bad_cells},
    ReasonCode.FOREIGN_USE: {"gang": _foreign_use},
    ReasonCode.NODE_NOT_OFFERED: {"node": _place_not_offered, "needs": _room_not_offered},
    ReasonCode.LACKS_RESOURCES: {"gang": _lacks_resources},
    ReasonCode.GANG_FULL: {"gang": _gang_full},
    ReasonCode.MEMBERS_ENDING: {"gang": _members_ending},
    ReasonCode.UNPLANNED: {"gang": queue_sentences.unplanned},
    ReasonCode.RESERVED: {"gang": queue_sentences.reserved},
    ReasonCode.MAINTENANCE: {"gang": queue_sentences.in_maintenance},
    ReasonCode.RESERVED_AHEAD: {"gang": queue_sentences.reserved_ahead},
    ReasonCode.MINIMUM_RUN: {"gang": end_sentences.minimum_run},
    ReasonCode.HELD_BY_USER: {"gang": queue_sentences.held},
    ReasonCode.HELD_BY_ADMIN: {"gang": queue_sentences.held},
    ReasonCode.GATHERING: {"gang": queue_sentences.gathering},
    ReasonCode.HELD_AT_BINDING: {"gang": queue_sentences.held_at_binding},
    ReasonCode.BINDING_GIVEN_UP: {"gang": queue_sentences.binding_given_up},
    ReasonCode.QUOTA: {"gang": queue_sentences.over_quota},
    ReasonCode.OTHER_GATE: {"pod": queue_sentences.other_gate},
    ReasonCode.NO_POD_GROUP: {"gang": queue_sentences.no_pod_group},
    ReasonCode.NO_SCHEDULER: {"gang": queue_sentences.no_scheduler},
    ReasonCode.UNKNOWN_CLASS: {"gang": queue_sentences.unknown_class},
    ReasonCode.BEING_PREEMPTED: {"gang": end_sentences.being_preempted},
    ReasonCode.PREEMPTING: {"gang": end_sentences.preempting},
    ReasonCode.PREEMPTED: {
        "moved_for": end_sentences.moved,
        "rule": end_sentences.reclaimed,
        "own": end_sentences.preempted_by_rule,
        "gang": end_sentences.preempted,
    },
    ReasonCode.UNKNOWN_VC: {"gang": _unknown_vc},
    ReasonCode.UNKNOWN_PINNED_CELL: {"gang": _unknown_pinned_cell},
    ReasonCode.UNKNOWN_LEAF_TYPE: {"gang": _unknown_leaf_type},
    ReasonCode.BAD_PRIORITY: {"gang": _bad_priority},
    ReasonCode.BAD_GANG_MIN: {"gang": _bad_gang_min},
    ReasonCode.BAD_LEAF_COUNT: {"member": _member_too_small, "gang": _no_members},
    ReasonCode.OPPORTUNISTIC_PINNED: {"gang": _opportunistic_pinned},
    ReasonCode.GANG_MISMATCH: {
        "differences": _disagreement,
        "uid": _member_of_another_gang,
        "member": _member_not_listed,
    },
    ReasonCode.TOO_LARGE: {
        "shortfall": in_a_cut_vc(_gang_too_large),
        "size": _too_many_members,
        "member": _member_too_large,
        "needs": _gang_too_large,
    },
    ReasonCode.SEARCH_ENDED: {"gang": _search_ended},
}
"""The sentences of each code, by the argument that tells them apart; the first match is used."""
