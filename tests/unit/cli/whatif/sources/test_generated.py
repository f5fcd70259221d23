"""The generated workload."""

from cli.whatif.sources.generated import Workload, generate, generated_source

_WORKLOAD = Workload(days=0.5, load=0.9, leaf_cells=64, seed=7)


def test_the_same_seed_gives_the_same_gangs() -> None:
    assert [*generate(_WORKLOAD)] == [*generate(_WORKLOAD)]


def test_gangs_ask_for_the_load_and_use_whole_nodes() -> None:
    found = generated_source(_WORKLOAD, node_leaf_cells=8)
    asked = sum(one.leaf_cells * one.run_seconds for one in found.arrivals)
    assert 0.9 <= asked / (64 * 43200.0) < 3.0
    assert {size for one in found.arrivals for size in one.sizes} <= {1, 2, 4, 8}
    times = [one.submitted for one in found.arrivals]
    assert times == sorted(times)
    assert found.source == "generated workload, load 0.9 of 64 leaf cells, 0.5 days, seed 7"
