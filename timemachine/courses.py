"""What has happened to each arrival so far, while a play goes on."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from policy.quotas.charge import Charge
from policy.rules.decision import Outcome
from policy.submission import ClassName, GangKey, GroupName, NodeName
from timemachine.model import Arrival, Fate
from timemachine.planned.gangs import PlayedGang


@dataclass(slots=True, eq=False)
class Course:
    """What has happened to one arrival so far."""

    arrival: Arrival
    key: GangKey
    """Unique, which the name of a gang is not."""
    class_name: ClassName
    outcome: Outcome = Outcome.REFUSED
    reason: str = ""
    charge: Charge | None = None
    group: GroupName | None = None
    can_start: bool = True
    is_lowered: bool = False
    gang: PlayedGang | None = None
    started: float | None = None
    ended: float | None = None
    nodes: tuple[NodeName, ...] = ()
    preemptions: int = 0

    def fate(self) -> Fate:
        """Return how it fared."""
        return Fate(
            arrival=self.arrival,
            outcome=self.outcome,
            class_name=self.class_name,
            reason=self.reason,
            started=self.started,
            ended=self.ended,
            nodes=self.nodes,
            preemptions=self.preemptions,
            group=self.group,
            can_start=self.can_start,
            is_lowered=self.is_lowered,
        )


def courses_of(arrivals: Sequence[Arrival]) -> list[Course]:
    """Give each arrival a key of its own, in the order of submission."""
    in_order = sorted(arrivals, key=lambda one: (one.submitted, one.gang))
    seen: Counter[GangKey] = Counter()
    courses: list[Course] = []
    for arrival in in_order:
        seen[arrival.gang] += 1
        again = seen[arrival.gang] - 1
        owner = f"{arrival.gang.owner}#{again}" if again else arrival.gang.owner
        key = replace(arrival.gang, owner=owner)
        courses.append(Course(arrival=arrival, key=key, class_name=arrival.requested_class))
    return courses
