"""Sentences about preemption: for gangs that preempt, and for their victims."""

from collections.abc import Sequence

from extender.cells.phrases import Sentence, names_text
from policy.wording import count_of


def being_preempted(*, gang: str, preemptors: Sequence[str], count: int) -> Sentence:
    """Write that a gang is a victim and has not ended yet."""
    return (
        f"gang {gang} is being preempted by {names_text(preemptors, count)}",
        "continues if the preemption is withdrawn, otherwise starts again once there is room",
    )


def preempting(
    *, gang: str, priority: int, vc: str, victims: Sequence[str], count: int
) -> Sentence:
    """Write that a gang waits for its victims to end."""
    return (
        f"gang {gang} (priority {priority} in VC {vc}) preempts {count_of(count, 'gang')}",
        f"starts once {names_text(victims, count)} {'has' if count == 1 else 'have'} ended",
    )


def preempted(*, gang: str, preemptor: str, priority: int, vc: str) -> Sentence:
    """Write why a victim ends; which of the rules applied is not known any more."""
    return (
        f"gang {gang} is preempted by gang {preemptor} (priority {priority} in VC {vc}): a "
        "guaranteed gang preempts opportunistic gangs, and gangs of its own VC with a lower "
        "priority",
        "pods that its controller creates again wait for free leaf cells",
    )


def preempted_by_rule(*, gang: str, preemptor: str, priority: int, vc: str, own: int) -> Sentence:
    """Write why a victim ends, whose own priority is known; below 0, it is opportunistic."""
    if own < 0:
        standing, rule = "", "it is opportunistic, and a guaranteed gang preempts such gangs"
    else:
        standing = f" (priority {own})"
        rule = "a guaranteed gang preempts gangs of its own VC with a lower priority"
    return (
        f"gang {gang}{standing} is preempted by gang {preemptor} (priority {priority} in VC {vc}): "
        f"{rule}",
        "pods that its controller creates again wait for free leaf cells",
    )


def reclaimed(*, gang: str, preemptor: str, priority: int, vc: str, rule: str) -> Sentence:
    """Write why a foreign pod ends."""
    return (
        f"gang {gang} uses leaf cells that Cellgate did not give it, and gang {preemptor} "
        f"(priority {priority} in VC {vc}), which was promised leaf cells, needs them; the Cluster "
        f"document says `{rule}`",
        "create its pods without spec.nodeName, and while the webhook answers: then they wait for "
        "free leaf cells",
    )
