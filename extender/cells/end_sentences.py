"""Sentences about preemption: for gangs that preempt, and for their victims."""

from collections.abc import Sequence

from extender.cells.phrases import Needs, Sentence, names_text, needs_text
from policy.queues.durations import format_duration
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


def minimum_run(
    *,
    gang: str,
    needs: Needs,
    members: int,
    vc: str,
    victims: Sequence[str],
    count: int,
    seconds: int,
    leaf_type: str = "",
) -> Sentence:
    """Write that a gang may preempt others only after their minimum run."""
    they = "that gang has" if count == 1 else "these gangs have"
    return (
        f"gang {gang} needs {needs_text(needs, members, leaf_type)}; it may preempt "
        f"{names_text(victims, count)} of its own VC {vc} once {they} run for "
        f"{format_duration(seconds)} (`preemption.minimumRun` of the Queues document)",
        "starts then, or once other gangs of the VC have ended",
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


def moved(*, gang: str, moved_for: str) -> Sentence:
    """Write why an opportunistic gang ends that is expected to fit elsewhere."""
    return (
        f"gang {gang} is moved for gang {moved_for}, for which leaf cells are reserved: both are "
        "opportunistic, and there is room for both once this one runs elsewhere "
        "(`defragmentation` of the Queues document)",
        "pods that its controller creates again keep its age and are expected to start at once",
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
