"""Sentences about gangs that the planner holds or that are being bound; `wording` uses them.

The engine does not decide about these gangs.
"""

from typing import Final

from extender.cells.phrases import Needs, Sentence, needs_text
from policy.queues.holds import Holder, HoldRole, describe_holder, lifted_by
from policy.wording import count_of, name


def unplanned(*, gang: str) -> Sentence:
    """The planner has not looked at a gang so far."""
    return (
        f"gang {gang} has not been planned yet",
        "planned in its turn, usually within seconds",
    )


def gathering(*, gang: str, members: int, needed: int, size: int) -> Sentence:
    """Members do not exist yet."""
    which, label = ("enough", "gang-min") if needed < size else ("all", "gang-size")
    return (
        f"gang {gang} is incomplete",
        f"scheduled once {which} members exist ({members} of {needed} so far); check "
        f"`cellgate.io/{label}`",
    )


def reserved(
    *, gang: str, needs: Needs, members: int, reserved_for: str, leaf_type: str = ""
) -> Sentence:
    """The leaf cells that a gang could use are reserved for another one."""
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; the leaf cells that it could "
        f"use are reserved for gang {reserved_for}",
        "starts once that gang has started or other leaf cells are free, or before that gang if "
        "it is expected to end in time: set a limit with `activeDeadlineSeconds`",
    )


_BEFORE_A_WINDOW: Final = (
    "starts once that time is over or other leaf cells are free, or, before it begins, if it is "
    "expected to end in time: set a limit with `activeDeadlineSeconds`"
)


def in_maintenance(
    *,
    gang: str,
    needs: Needs,
    members: int,
    window: str,
    node: str,
    begins: str,
    ends: str,
    leaf_type: str = "",
) -> Sentence:
    """A node that a gang could use is in maintenance, or will be before the gang ends."""
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; node {name(node)}, which it "
        f"could use, is in maintenance window {name(window)} from {begins} until {ends}",
        _BEFORE_A_WINDOW,
    )


def reserved_ahead(
    *,
    gang: str,
    needs: Needs,
    members: int,
    window: str,
    begins: str,
    ends: str,
    leaf_type: str = "",
) -> Sentence:
    """The leaf cells that a gang could use are reserved in advance for others."""
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; the leaf cells that it could "
        f"use are reserved for other gangs from {begins} until {ends} by the advance reservation "
        f"{name(window)}",
        _BEFORE_A_WINDOW,
    )


def held(
    *,
    gang: str,
    why: str,
    role: str,
    user: str,
    until: str = "",
    after: str = "",
    circle: str = "",
) -> Sentence:
    """A user keeps a gang out of the queue; it and those of `circle` wait for each other's end."""
    holder = Holder(role=HoldRole(role), user=user)
    if circle:
        return (
            f"{describe_holder(holder)} holds gang {gang}: {why}; it waits for the end of a gang "
            "that waits for its own end, so that neither starts",
            f"released once the annotation `cellgate.io/hold` is removed from its pods or from "
            f"those of {circle}; {lifted_by(holder)}",
        )
    ends = f"on {until}, or " if until else f"once gang {after} has ended, or " if after else ""
    return (
        f"{describe_holder(holder)} holds gang {gang}: {why}",
        f"released {ends}once the annotation `cellgate.io/hold` is removed from its pods; "
        f"{lifted_by(holder)}",
    )


def held_at_binding(*, gang: str, members: int, needed: int) -> Sentence:
    """Members wait for others before they are bound."""
    return (
        f"gang {gang} is held at binding",
        f"bound once {needed} members have passed kube-scheduler's checks ({members} so far)",
    )


_GIVEN_UP: Final = {
    "refused": "kube-scheduler refuses the node of a member",
    "silent": "not all members passed kube-scheduler's checks in time",
    "overdue": "kube-scheduler did not check all members within the time of `--hold-seconds`",
    "place-lost": "a member has lost its place",
    "stopped": "this replica stops",
}


def binding_given_up(*, gang: str, cause: str) -> Sentence:
    """Members that were held at binding are not bound."""
    return (
        f"no member of gang {gang} is bound now: {_GIVEN_UP[cause]}",
        "planned again; `kubectl describe pod` shows what kube-scheduler says about each member",
    )


def over_quota(*, gang: str, group: str, leaf_cells: int) -> Sentence:
    """A gang waits for quota."""
    needed = count_of(leaf_cells, "more leaf cell") if leaf_cells else "the gang"
    return (
        f"gang {gang} waits for quota of group {group}",
        f"starts once the limits of the group, and of the user in it, have room for {needed}",
    )


def other_gate(*, pod: str) -> Sentence:
    """Another controller holds a pod."""
    return (
        f"pod {pod} has a scheduling gate of another controller",
        "scheduled once that controller has removed its gate",
    )


def no_pod_group(*, gang: str) -> Sentence:
    """The PodGroup of a gang does not exist."""
    return (
        f"gang {gang} has no PodGroup that gives its size",
        "create the PodGroup, or correct its name in the pods",
    )


def no_scheduler(*, gang: str, scheduler: str) -> Sentence:
    """The scheduler that the pods name has never asked about a pod."""
    return (
        f"gang {gang} names the scheduler {name(scheduler)}, which has asked about no pod: it "
        "does not run, or does not use Cellgate's extender",
        "create the pods without `schedulerName`, or start that scheduler",
    )


def unknown_class(*, gang: str, problem: str) -> Sentence:
    """A pod has a class that is not listed."""
    return (
        f"gang {gang} is not valid: {problem}",
        "add the class to the document, or create the pods again with another class",
    )
