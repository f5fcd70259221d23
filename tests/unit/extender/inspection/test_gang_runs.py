"""The runs of a gang: one is shown, the others are listed."""

from extender.inspection.gang_runs import GangRuns
from kube import marks
from policy.placement import Placement
from policy.submission import NodeName
from tests.support.extender.shell import Shell
from tests.support.kube.objects import uid_of
from tests.support.kube.pods import PodBuilder, a_pod
from tests.support.kube.workloads import workload_mark


def _member(name: str, *, job: str, at: str = "2026-01-01T00:00:00Z") -> PodBuilder:
    pod = a_pod(name).with_gpus(8).in_gang("bert", size=1).created_at(at)
    return pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark(job))


def _on(pod: PodBuilder, node: str) -> PodBuilder:
    placement = Placement(node=NodeName(node), leaf_cells=tuple(range(8)))
    return pod.placed(placement).bound_to(node)


def test_the_youngest_run_that_has_places_is_shown_and_the_others_are_listed() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_on(_member("a", job="old"), "node-00"))
    shell.pods.upsert(_on(_member("b", job="new", at="2026-01-02T00:00:00Z"), "node-01"))
    shell.pods.upsert(_member("c", job="next", at="2026-01-03T00:00:00Z").gated())
    runs = GangRuns(cluster=shell.cluster, pods=shell.pods)
    shown = runs.show("lab", "bert")
    assert shown is not None
    assert (shown["gang"], shown["workload"], shown["uid"]) == (
        "lab/bert",
        "Job new",
        uid_of("new"),
    )
    others = {run["workload"]: (run["state"], run["bound"]) for run in shown["otherRuns"]}
    assert others == {"Job old": ("allocated", 1), "Job next": ("waiting", 0)}
    exact = runs.show("lab", f"bert@{uid_of('old')}")
    assert exact is not None
    assert (exact["workload"], exact["otherRuns"]) == ("Job old", [])


def test_a_gang_without_places_is_not_shown() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_member("c", job="next").gated())
    runs = GangRuns(cluster=shell.cluster, pods=shell.pods)
    assert runs.show("lab", "bert") is None
    assert runs.show("lab", f"bert@{uid_of('next')}") is None


def test_a_gang_without_a_workload_is_shown_by_its_name() -> None:
    shell = Shell()
    shell.recover()
    shell.pods.upsert(_on(a_pod("a").with_gpus(8).in_gang("bert", size=1), "node-00"))
    shown = GangRuns(cluster=shell.cluster, pods=shell.pods).show("lab", "bert")
    assert shown is not None
    assert "uid" not in shown
