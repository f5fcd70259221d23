"""What a simulation cannot know, in words and with numbers."""

from collections.abc import Iterator

from policy.wording import are, count_of
from timemachine.model import Run

_ALWAYS = (
    "The same gangs arrive at the same times on both sides: users who wait less or longer, or are "
    "refused, would have submitted other gangs, and at other times.",
    "A gang runs as long as it did, wherever it runs: run times do not depend on the nodes.",
    "Only leaf cells are played: CPU, memory, volumes, node failures and the seconds that "
    "kube-scheduler and the kubelet take are not.",
    "A gang that is preempted runs again from the beginning, in the class and with the charge that "
    "it had.",
)


def unknown_of(before: Run, after: Run) -> tuple[str, ...]:
    """Return what two runs cannot know."""
    return (*_ALWAYS, *_predicted(after), *_impossible(before, after))


def _predicted(run: Run) -> Iterator[str]:
    counted = [fate.arrival for fate in run.fates if fate.arrival.is_counted]
    number = sum(arrival.is_predicted for arrival in counted)
    if number:
        which = f"{number} of {count_of(len(counted), 'gang')}"
        yield f"The run times of {which} are predicted: these were refused or have not ended."


def _impossible(before: Run, after: Run) -> Iterator[str]:
    for run in (before,) if before is after else (before, after):
        number = sum(not fate.can_start for fate in run.fates)
        if number:
            never = f"{count_of(number, 'gang')} can never start and {are(number)} not planned"
            yield f"{run.world.title}: {never}; in a real queue they would wait."
