"""Maintenance windows and advance reservations in time: what applies now, and for whom.

What applies is a function of the document, the nodes and the time alone. So a clock that jumps, a
new document in the middle of a window and a restart need no care of their own: `has_changed` tells
when the answer differs from the last one, and the planner then looks at waiting gangs again.
"""

from collections.abc import Collection, Mapping

from extender.cells.model import OPPORTUNISTIC, WindowNote
from extender.queue.order.ranking import Ranking
from extender.queue.ports import RunTimes
from extender.queue.queued_gang import QueuedGang
from policy.queues.queues import Queues
from policy.queues.windows import (
    DRAIN,
    AdvanceReservation,
    MaintenanceWindow,
    next_boundary,
)
from policy.submission import GangKey, NodeName
from policy.wording import moment

_MOST_ANSWERS = 64
_FEWEST_RUNS = 10
"""Ended runs from which a gap is judged: one short run says little about the next one."""
Closed = Mapping[NodeName, MaintenanceWindow]


class Calendar:
    """The windows of the document in force, as the planner and its neighbours ask about them."""

    def __init__(self, run_times: RunTimes, ranking: Ranking) -> None:
        self._run_times = run_times
        self._ranking = ranking
        self._labelled: Mapping[str, Collection[NodeName]] = {}
        """The nodes that labels add to windows, by the name of the window."""
        self._changes = 0
        """How often these nodes have changed."""
        self._last: object = None
        self._known: tuple[MaintenanceWindow, ...] = ()
        """The windows for which answers are kept; each decision asks for the same ones."""
        self._nodes: dict[str, dict[NodeName, None]] = {}
        self._closed: dict[tuple[str, ...], Closed] = {}

    @property
    def now(self) -> float:
        """The last time that the planner was told, in seconds since 1970."""
        return self._ranking.now

    @property
    def queues(self) -> Queues:
        """The document in force."""
        return self._ranking.order.queues

    @property
    def windows(self) -> tuple[AdvanceReservation | MaintenanceWindow, ...]:
        """All windows of the document in force."""
        return (*self.queues.reservations, *self.queues.maintenance)

    # -- what applies

    def note_nodes(self, nodes: Mapping[str, Collection[NodeName]]) -> None:
        """Note which nodes have the labels of each window, after each change of one of them.

        They are looked at when they are asked for: a node that joins has no cost for the others.
        """
        self._labelled = nodes
        self._changes += 1
        self._forget_answers()

    def _forget_answers(self) -> None:
        self._known = self.queues.maintenance
        self._nodes, self._closed = {}, {}

    def nodes_of(self, window: MaintenanceWindow) -> Mapping[NodeName, None]:
        """Return the nodes of a window of the document; some may not exist."""
        if self._known is not self.queues.maintenance:
            self._forget_answers()
        found = self._nodes.get(window.name)
        if found is None:
            labelled = dict.fromkeys(sorted(self._labelled.get(window.name, ())))
            found = self._nodes[window.name] = {**dict.fromkeys(window.nodes), **labelled}
        return found

    def has_changed(self) -> bool:
        """Tell whether other windows apply, or other nodes belong to them, than when last asked."""
        windows = self.windows
        phases = [(self.now >= one.begins) + (self.now >= one.ends) for one in windows]
        current = (windows, phases, self._changes) if windows else None
        is_other, self._last = current != self._last, current
        return is_other

    def next_time(self) -> float | None:
        """Return when a window begins or ends next."""
        times = (time for one in self.windows for time in (one.begins, one.ends))
        return next_boundary(times, now=self.now)

    # -- gangs

    def ends_within(self, gang: GangKey) -> float | None:
        """Return within which time a gang ends, safely enough to use a gap; None if unknown.

        A limit is enforced. A prediction counts if enough runs have ended that it was made from.
        """
        run = self._run_times.expected(gang)
        high = run.high if run.runs >= _FEWEST_RUNS else None
        known = [seconds for seconds in (high, run.limit) if seconds is not None]
        return min(known) if known else None

    def counts_for(self, gang: QueuedGang) -> float:
        """Return how long a gang counts as running at windows.

        A window may be weeks away: an unknown run does not count as endless, but as the longest run
        of its class, or else as `runTime.cap`.
        """
        known, rules = self.ends_within(gang.key), self.queues.run_time
        if known is not None:
            return known
        longest = rules.longest_of(gang.first.class_name)
        return rules.cap if longest is None else longest

    def covered(self, gang: QueuedGang) -> tuple[str, ...]:
        """Return the advance reservations whose cells a gang may use."""
        if not self.queues.reservations:
            return ()
        facts = self._ranking.facts(gang)
        return tuple(one.name for one in self.queues.reservations if one.covers(facts))

    def closed_to(self, gang: QueuedGang, *, ends_at: float | None = None) -> Closed:
        """Return the nodes that a gang may not use if it starts now, each with its window.

        `ends_at` is when it ends, if another end is asked about than the expected one.
        Members that are added to a gang which runs are kept off only while a window is in force.
        """
        if not self.queues.maintenance:
            return {}
        counted = self.now + self.counts_for(gang) if ends_at is None else ends_at
        until = self.now if gang.has_begun else counted
        is_opportunistic = gang.first.request.priority == OPPORTUNISTIC
        return self.closed_between(self.now, until, is_opportunistic=is_opportunistic)

    def closed_between(
        self, begins: float, ends: float, *, is_opportunistic: bool = False
    ) -> Closed:
        """Return the nodes of windows that a run between two times meets."""
        met = []
        for one in self.queues.maintenance:
            is_allowed = is_opportunistic and one.opportunistic != DRAIN
            is_met = one.begins <= begins or (ends > one.begins and not is_allowed)
            if is_met and begins < one.ends:
                met.append(one)
        return self._closed_by(met) if met else {}

    def _closed_by(self, windows: list[MaintenanceWindow]) -> Closed:
        """Return the nodes of windows, each with the first of its windows."""
        if self._known is not self.queues.maintenance or len(self._closed) >= _MOST_ANSWERS:
            self._forget_answers()
        key = tuple(one.name for one in windows)
        found = self._closed.get(key)
        if found is None:
            closed: dict[NodeName, MaintenanceWindow] = {}
            for one in sorted(windows, key=lambda one: (one.begins, one.name)):
                for node in self.nodes_of(one):
                    closed.setdefault(node, one)
            found = self._closed[key] = closed
        return found

    def entry(self, name: str) -> AdvanceReservation | None:
        """Return an advance reservation of the document in force."""
        return next((one for one in self.queues.reservations if one.name == name), None)

    def note_of_entry(self, name: str) -> WindowNote:
        """Describe the advance reservation for which a gang waits."""
        one = self.entry(name)
        times = (one.begins, one.ends) if one is not None else (self.now, self.now)
        return WindowNote(name=name, begins=moment(times[0]), ends=moment(times[1]))


def note_of(window: MaintenanceWindow, node: NodeName) -> WindowNote:
    """Describe the maintenance window for which a gang waits."""
    return WindowNote(
        name=window.name,
        begins=moment(window.begins),
        ends=moment(window.ends),
        node=node,
    )
