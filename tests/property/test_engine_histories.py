"""Denser histories than hypothesis draws: seeds decide; the same checks hold after each step."""

import os
from random import Random

import pytest

from tests.property.clusters import a_random_cluster
from tests.property.test_engine import EngineHistory
from tests.unit.extender.cells.builders import a_node

HISTORIES = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "deep" else 160
STEPS = 12
WORDS = (
    *("crowd",) * 5,
    *("end",) * 4,
    *("bind",) * 2,
    *("leave",) * 2,
    *("evict", "wait", "node", "crash", "reconfigure"),
)


def _play(history: EngineHistory, word: str, random: Random) -> None:
    if word == "crowd":
        history.crowd(seed=random.randint(0, 99_999), count=random.randint(2, 5))
    elif word in ("end", "bind") and history.requests:
        uid = random.choice(sorted(history.requests))
        history.end_member(uid) if word == "end" else history.bind_member(uid)
    elif word == "leave" and history.requests:
        for uid in random.sample(sorted(history.requests), min(3, len(history.requests))):
            history.tell_members_to_end(history.siblings(uid))
    elif word == "evict":
        history.evict()
    elif word == "wait":
        history.wait(seconds=random.choice([1, 12]))
    elif word == "node":
        node, is_healthy = random.choice(history.nodes), random.random() < 0.6
        bad = random.choice([(), (0,), (1,)])
        history.bad[node] = bad if is_healthy else None
        history.engine.observe_node(a_node(node, is_healthy=is_healthy, bad=bad))
    elif word == "crash":
        history.crash(order=random.random() < 0.5)
    elif word == "reconfigure":
        history.reconfigure(topology=a_random_cluster(random))


def play_history(seed: int) -> None:
    """The history of a seed; everything is checked after each step."""
    random = Random(seed)
    history = EngineHistory.__new__(EngineHistory)
    history.start(topology=a_random_cluster(random))
    for _ in range(STEPS):
        _play(history, random.choice(WORDS), random)
        history.everything_holds()
        history.victims_and_preemptors_agree()


@pytest.mark.parametrize("part", range(8))
def test_everything_holds_after_each_step(part: int) -> None:
    for seed in range(part, HISTORIES, 8):
        play_history(seed)
