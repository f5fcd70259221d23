"""Denser histories than hypothesis draws: seeds decide; the same checks hold after each step."""

import os
from random import Random

import pytest

from tests.support.cells.builders import a_node_cell
from tests.support.cells.engine_history import EngineHistory
from tests.support.cells.random_clusters import a_random_cluster

HISTORIES = {"brief": 32, "fast": 160, "deep": 2000}[os.environ.get("HYPOTHESIS_PROFILE", "fast")]
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
    elif word == "leave":
        history.leave(seed=random.randint(0, 99_999), count=random.randint(1, 4))
    elif word == "evict":
        history.evict()
    elif word == "wait":
        history.wait(seconds=random.choice([1, 12]))
    elif word == "node":
        node, is_healthy = random.choice(history.nodes), random.random() < 0.6
        bad = random.choice([(), (0,), (1,)])
        history.bad[node] = bad if is_healthy else None
        history.engine.observe_node(a_node_cell(node, is_healthy=is_healthy, bad=bad))
    elif word == "crash":
        history.crash(order=random.random() < 0.5)
    elif word == "reconfigure":
        history.reconfigure(topology=a_random_cluster(random))


def play_history(seed: int) -> None:
    """The history of a seed; everything is checked after each step."""
    random = Random(seed)
    history = EngineHistory.__new__(EngineHistory)
    history.start(topology=a_random_cluster(random), reclaims=False)
    for _ in range(STEPS):
        _play(history, random.choice(WORDS), random)
        history.everything_holds()
        history.victims_and_preemptors_agree()


def play_leaving(seed: int) -> None:
    """Low gangs fill a cluster, some of them are ending, and urgent ones come for their cells."""
    random = Random(seed)
    history = EngineHistory.__new__(EngineHistory)
    history.start(topology=a_random_cluster(random), reclaims=False)
    for number in range(13):
        is_urgent = number >= 10
        history.arrive(
            sizes=random.choices([1, 2, 4] if is_urgent else [1, 1, 2], k=random.choice([1, 2, 3])),
            vc=random.choice("aab"),
            priority=9 if is_urgent else random.choice([-1, -1, 0]),
            flags=(False, True, random.random() < 0.4),
            pinned=False,
            left_out=[],
        )
        if number % 4 == 3:
            history.leave(seed=random.randint(0, 99_999), count=random.randint(0, 2))
        history.everything_holds()
        history.victims_and_preemptors_agree()


@pytest.mark.parametrize("part", range(4))
def test_nobody_ends_whom_those_that_are_ending_make_unnecessary(part: int) -> None:
    for seed in range(part, HISTORIES, 4):
        play_leaving(seed)


@pytest.mark.parametrize("seed", [1432, 1624, 1855])
def test_cells_that_are_held_and_reserved_count_once(seed: int) -> None:
    play_history(seed)


@pytest.mark.parametrize("part", range(8))
def test_everything_holds_after_each_step(part: int) -> None:
    for seed in range(part, HISTORIES, 8):
        play_history(seed)
