"""Sentences name a few things and count the others."""

from extender.cells.model import Reject, Wait
from tests.support.cells.builders import a_cluster, a_gang
from tests.support.cells.engine_world import EngineWorld


def test_long_lists_are_cut() -> None:
    many_vcs = a_cluster("20 nodes x 1")
    for index in range(20):
        many_vcs.promising(f"vc-{index:02}", node=1)
    refused = EngineWorld(many_vcs).ask(a_gang("bert").in_vc("c"))
    assert isinstance(refused, Reject)
    assert refused.reason.change == (
        "use one of vc-00, vc-01, vc-02, vc-03, vc-04, vc-05, vc-06, vc-07 and 12 more"
    )
    waits = EngineWorld(many_vcs).ask(a_gang("bert").of(*range(1, 11)).in_vc("vc-00"))
    assert isinstance(waits, Wait)
    assert "needs 1 x 10 and 1 x 9 and" in waits.reason.text
    assert "1 x 3 and 2 smaller leaf cells" in waits.reason.text
