"""Leaf cells and cells, counted by VC and state."""

from extender.inspection.census import Census
from tests.support.extender.gang_pods import bound
from tests.support.extender.shell import Shell
from tests.support.kube.pods import a_pod


def test_leaf_cells_are_counted_by_vc_and_state() -> None:
    shell = Shell()
    shell.node("node-03", is_healthy=False)
    shell.recover()
    shell.pods.upsert(bound("a", "node-00", gang="one", size=1))
    shell.pods.upsert(a_pod("foreign").with_gpus(3).in_vc("lab").bound_to("node-01"))
    shell.pods.upsert(
        a_pod("misfit").with_gpus(1).labelled("cellgate.io/vc", "?").bound_to("node-01")
    )
    census = Census(shell.cluster)
    list(census.count())

    assert dict(census.leaf_cells) == {
        ("", "free"): 12,
        ("", "bad"): 8,
        ("lab", "used"): 8,
        ("", "foreign"): 4,
    }
    assert dict(census.cells) == {("lab", "node", "free"): 3, ("lab", "node", "used"): 1}
    assert (census.gangs, census.leases) == (3, 0)
    assert census.fragmentation == 4 / 12
