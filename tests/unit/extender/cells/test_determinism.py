"""The same history gives the same decisions, whatever the hash seed of the process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
HISTORY = """
from random import Random
from tests.support.cells.random_clusters import a_random_cluster
from tests.support.cells.builders import a_gang, an_engine, nodes_of
from tests.support.cells.engine_calls import list_cells, list_vcs

for seed in range(12):
    random = Random(seed)
    topology = a_random_cluster(random)
    engine, nodes = an_engine(topology), nodes_of(topology)
    for number in range(25):
        sizes = random.choices([1, 2, 2, 3], k=random.choice([1, 2, 3]))
        gang = a_gang(f"g{number}").of(*sizes).in_vc(random.choice("ab"))
        request = gang.at(random.choice([-1, 0, 5, 9])).member()
        decision = engine.plan(request, candidate_nodes=nodes)
        engine.apply(decision, now=number)
        print(decision)
        if number % 5 == 4:
            engine.expire(now=number + 58)
            print(engine.gangs(), list_cells(engine), list_vcs(engine))
"""


def _play(seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", HISTORY],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_decisions_do_not_depend_on_the_hash_seed() -> None:
    first, second = _play("1"), _play("2")
    assert first.count("Place(") > 20
    assert "Preempt(" in first
    assert first == second
