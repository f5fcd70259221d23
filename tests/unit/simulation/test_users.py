"""The people: the same gangs for the same seed, and never too many."""

import random
from itertools import islice

import pytest

from simulation.users import SimulatedGang, build_pod, plan_gangs


def _plan(
    seed: int, count: int, *, leaf_per_node: int = 8, leaf_total: int = 128
) -> list[SimulatedGang]:
    rng = random.Random(seed)
    gangs = plan_gangs(rng, leaf_per_node=leaf_per_node, leaf_total=leaf_total)
    return list(islice(gangs, count))


def test_workload_depends_on_the_seed_alone() -> None:
    assert _plan(1, 50) == _plan(1, 50)
    assert _plan(1, 50) != _plan(2, 50)


def test_workload_is_mixed() -> None:
    gangs = _plan(0, 200)
    assert {gang.submitter.vc for gang in gangs} == {"vision", "speech", "lab"}
    assert {gang.class_name for gang in gangs} == {"prod", "test", "oppo"}
    assert {(gang.members, gang.leaf_count) for gang in gangs} >= {(1, 1), (2, 4), (4, 8)}
    assert all(20 <= gang.run_seconds <= 90 for gang in gangs)
    assert len({gang.name for gang in gangs}) == 200


@pytest.mark.parametrize(("leaf_per_node", "leaf_total"), [(4, 16), (8, 16), (1, 4)])
def test_gangs_fit_a_small_cluster(leaf_per_node: int, leaf_total: int) -> None:
    for gang in _plan(0, 100, leaf_per_node=leaf_per_node, leaf_total=leaf_total):
        assert gang.leaf_count <= leaf_per_node
        assert gang.members * gang.leaf_count <= leaf_total / 2


def test_members_differ_in_name_only() -> None:
    gang = next(gang for gang in _plan(0, 100) if gang.members == 2)
    first, second = build_pod(gang, 0), build_pod(gang, 1)
    assert first["metadata"].pop("name") == f"{gang.name}-0"
    assert second["metadata"].pop("name") == f"{gang.name}-1"
    assert first == second
    assert first["metadata"]["labels"] == {
        "cellgate.io/gang": gang.name,
        "cellgate.io/gang-size": "2",
        "cellgate.io/vc": gang.submitter.vc,
        "simulation.cellgate.io/person": gang.submitter.user.name,
    }
