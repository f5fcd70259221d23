"""A history whose log has all that the queue decides: what replays of a plan are tested with."""

import asyncio
from functools import lru_cache
from random import Random

from extender.cluster.replay import Report, replay_epoch
from policy.submission import GangKey
from state.log.records import DecisionRecord
from tests.support.policy.cluster_texts import derived_text
from tests.support.queue.logged_world import Asked, LoggedWorld
from tests.support.twins.log import MemoryDecisions

_HEAD = "apiVersion: cellgate.io/v1\nkind: Queues\n"
_LEVELS = """
levels:
- {{name: fast, who: {{users: [dana]}}, strategy: fifo, worth: {{class: 1h}}}}
- name: rest
  strategy: priority
  worth: {{class: 2h, userLevel: 1h, fairShare: {share}, shortRun: 2h, smallGang: 1h, fill: 30m,
          asked: 1h, startBy: 1h}}
  promoteAfter: 2h
userLevels: {{gold: [alice, dana], silver: [bob]}}
runTime: {{cap: 12h, longest: {{default: 6h}}}}
fairShare: {{halfLife: 6h}}
reservation: {{perPool: {per_pool}, after: 1m}}
"""
FIRST = _HEAD + _LEVELS.format(share="4h", per_pool=1)
SECOND = _HEAD + _LEVELS.format(share="8h", per_pool=2)
BOOKED = (
    SECOND
    + """
reservations:
- {name: demo, vc: b, leafType: A100, members: 2, leafCells: 8,
   from: "1970-01-12T22:00:00Z", until: "1970-01-13T04:00:00Z", who: {users: [dana]}}
"""
)
_SIZES = ((1,), (2,), (8,), (4, 4), (8, 8), (8, 8, 8), (8,) * 4)
_ROUNDS = 120
_EPOCHS = (1, 2)
_WEIGHTS = (6, 4, 5, 4, 3, 2, 2)


class LoggedHistory(LoggedWorld):
    """Gangs of all kinds on eight nodes, which are never enough."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(derived_text(a=4, b=3), FIRST)
        self._random = Random(seed)
        self._born = 0

    def play(self, rounds: int) -> None:
        """Let gangs come and go; at fixed moments documents, nodes and the leader change."""
        for turn in range(rounds):
            part = turn * 10 // rounds
            if turn == rounds * 3 // 10:
                self.use_queues(SECOND)
            if turn == rounds * 4 // 10:
                self.use_cluster(derived_text(a=3, b=4))
            if turn == rounds * 5 // 10:
                self.lead()
            if turn == rounds * 6 // 10:
                self.use_queues(BOOKED)
            if turn % max(2, rounds // 12) == 1:
                name = self._random.choice(sorted(self.nodes))
                self.set_node(name, is_healthy=not self.nodes[name])
            for _ in range(self._random.randrange(4)):
                self.submit(self._a_gang())
            waiting = self._waiting()
            if part % 3 == 1 and len(waiting) > 4:
                self.swap(*self._random.sample(waiting, 2))
            if waiting and self._random.random() < 0.1:
                self.withdraw(self._random.choice(waiting))
            self.advance(self._random.choice([30.0, 120.0, 600.0]))
            self.refresh()

    def _waiting(self) -> list[GangKey]:
        return [facts.gang for facts, _ in self.planner.ranking.in_order()]

    def _a_gang(self) -> Asked:
        pick = self._random
        self._born += 1
        (sizes,) = pick.choices(_SIZES, _WEIGHTS)
        runs = pick.choice([300.0, 1800.0, 7200.0, 14_400.0])
        expected = pick.choice([None, runs, runs * 2, runs / 2])
        return Asked(
            name=f"gang-{self._born}",
            sizes=sizes,
            vc=pick.choice("ab"),
            class_name=pick.choices(["urgent", "normal", "spare"], [1, 6, 3])[0],
            user=pick.choice(["alice", "bob", "carl", "dana"]),
            group=pick.choice([None, "vision"]),
            runs=runs,
            expected=expected,
            limit=pick.choice([None, 21_600.0]),
            start_by=pick.choice([None, None, self.now + 7200.0]),
        )


@lru_cache(maxsize=1)
def the_log() -> MemoryDecisions:
    """The log of one history. It is made once, by rules that are not broken."""
    history = LoggedHistory()
    history.play(_ROUNDS)
    asyncio.run(history.log.flush())
    return history.store


def rows(kind: str) -> list[DecisionRecord]:
    """Return its rows of one kind."""
    return [record for record in the_log().records if record.kind == kind]


def replayed() -> list[Report]:
    """Decide everything in the log again."""
    store = the_log()
    return [asyncio.run(replay_epoch(store, epoch=epoch)) for epoch in _EPOCHS]
