"""The runs of a gang: one is shown, the others are listed."""

from dataclasses import replace

from extender.cells.model import Place
from extender.cluster.journal import DecisionContext
from extender.inspection.gang_runs import GangRuns
from kube import marks
from policy.placement import Placement
from policy.submission import GangKey, NodeName
from state.log.records import RowKind
from tests.support.extender.shell import Shell
from tests.support.extender.waiting import a_waiting_view
from tests.support.kube.objects import uid_of
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark


def _member(name: str, *, job: str, at: str = "2026-01-01T00:00:00Z") -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_gang("bert", size=1).created_at(at)
    return pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark(job))


def _runs(shell: Shell) -> GangRuns:
    return GangRuns(cluster=shell.cluster, pods=shell.pods, waiting=a_waiting_view(shell))


def _on(pod: PodBuilder, node: str) -> PodBuilder:
    placement = Placement(node=NodeName(node), leaf_cells=tuple(range(8)))
    return pod.placed(placement).bound_to(node)


async def test_the_youngest_run_that_has_places_is_shown_and_the_others_are_listed() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_on(_member("a", job="old"), "node-00"))
    shell.pods.upsert(_on(_member("b", job="new", at="2026-01-02T00:00:00Z"), "node-01"))
    shell.pods.upsert(_member("c", job="next", at="2026-01-03T00:00:00Z").gated())
    runs = _runs(shell)
    shown = await runs.show("lab", "bert")
    assert shown is not None
    assert (shown["gang"], shown["workload"], shown["uid"]) == (
        "lab/bert",
        "Job/new",
        uid_of("new"),
    )
    others = {run["workload"]: (run["state"], run["bound"]) for run in shown["otherRuns"]}
    assert others == {"Job/old": ("allocated", 1), "Job/next": ("waiting", 0)}
    exact = await runs.show("lab", f"bert@{uid_of('old')}")
    assert exact is not None
    assert (exact["workload"], exact["otherRuns"]) == ("Job/old", [])


async def test_a_gang_without_places_is_shown_with_why_it_waits() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_member("c", job="next").gated())
    runs = _runs(shell)
    for name in ("bert", f"bert@{uid_of('next')}"):
        shown = await runs.show("lab", name)
        assert shown is not None
        assert (shown["state"], shown["waiting"]["code"]) == ("waiting", "unplanned")
    assert await runs.show("lab", "unknown") is None


async def test_a_gang_without_a_workload_is_shown_by_its_name() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_on(a_pod("a").with_gpus(8).in_gang("bert", size=1), "node-00"))
    shown = await _runs(shell).show("lab", "bert")
    assert shown is not None
    assert "uid" not in shown


async def test_a_gang_is_shown_with_its_members_without_leaf_cells() -> None:
    shell = Shell()
    shell.recover()
    for name, gpus in (("a", 8), ("b", 8), ("launcher", 0)):
        shell.pods.upsert(a_pod(name).with_gpus(gpus).in_vc("lab").in_gang("bert", size=3))
    request = replace(shell.to_request(shell.pod("a")), gang_leaf_counts=(8, 8))
    context = DecisionContext(kind=RowKind.PLACEMENT, now=1.0)
    nodes = {NodeName(f"node-{index:02}"): None for index in range(4)}
    decision = shell.cluster.decide(request, candidate_nodes=nodes, context=context)
    assert isinstance(decision, Place)
    view = shell.cluster.gang(GangKey("lab", "bert"))
    assert view is not None
    assert (view.size, _runs(shell).show_gang(view)["size"]) == (2, 3)
