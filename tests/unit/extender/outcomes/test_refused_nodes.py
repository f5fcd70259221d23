"""Refusals of kube-scheduler, counted by what the node lacks."""

import pytest

from extender.cluster.journal import DecisionContext
from extender.outcomes.refused_nodes import RefusedNodes
from kube.read.refusals import RefusalKind, classify
from state.log.records import RowKind
from tests.support.extender.shell import Shell
from tests.support.kube.pods import PodBuilder, a_pod


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("1 Insufficient cpu, 3 leaf cells are leased on node n0", RefusalKind.CPU),
        ("1 Insufficient memory", RefusalKind.MEMORY),
        ("1 Insufficient ephemeral-storage", RefusalKind.STORAGE),
        ("1 Insufficient rdma/hca", RefusalKind.RESOURCE),
        ("1 Too many pods", RefusalKind.PODS),
        ("1 node(s) didn't have free ports for the requested pod ports", RefusalKind.PORTS),
        ("1 node(s) had untolerated taint(s)", RefusalKind.TAINTS),
        ("1 node(s) had volume node affinity conflict", RefusalKind.VOLUMES),
        ("1 node(s) didn't match pod anti-affinity rules", RefusalKind.POD_AFFINITY),
        ("1 node(s) didn't match Pod's node affinity/selector", RefusalKind.NODE_AFFINITY),
        ("", RefusalKind.OTHER),
    ],
)
def test_a_message_of_kube_scheduler_names_what_is_lacking(reason: str, kind: RefusalKind) -> None:
    assert classify(f"0/4 nodes are available: {reason}. preemption: not helpful") is kind


def _refused(pod: PodBuilder, message: str) -> PodBuilder:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return pod.with_status(conditions=[{**condition, "message": message}])


def test_a_refusal_of_a_planned_node_is_counted_once() -> None:
    shell = Shell()
    RefusedNodes(cluster=shell.cluster, pods=shell.pods, metrics=shell.metrics)
    shell.recover()
    pod = a_pod("a").with_gpus(8).in_vc("lab").gated()

    def counted() -> float:
        return float(shell.metrics.refused_nodes.labels("cpu")._value.get())

    shell.pods.upsert(_refused(pod, "1 Insufficient cpu"))
    assert counted() == 0, "no node was planned for it"
    context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0)
    request = shell.to_request(shell.pod("a"))
    nodes = dict.fromkeys(shell.cluster.nodes)
    shell.cluster.decide(request, candidate_nodes=nodes, context=context)
    for message in ("1 Insufficient cpu", "1 Insufficient cpu", "2 Insufficient cpu"):
        shell.pods.upsert(_refused(pod, message))
    assert counted() == 2
    shell.pods.upsert(pod)
    shell.pods.upsert(_refused(pod, "2 Insufficient cpu"))
    assert counted() == 3
    shell.pods.remove(pod)
