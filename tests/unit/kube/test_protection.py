"""Pods of the cluster itself are never ended to make room."""

import pytest

from kube.read.pods import is_protected
from kube.read.trimming import trim_pod
from tests.support.kube.pods import PodBuilder, a_pod

DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u"}


def _owned(**fields: object) -> PodBuilder:
    return a_pod("a").with_gpus(1)._changed("metadata", ownerReferences=[{**DAEMON_SET, **fields}])


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("a").with_gpus(1).annotated("kubernetes.io/config.mirror", "hash"),
        _owned(controller=True),
        a_pod("a").with_gpus(1)._changed("metadata", namespace="kube-system"),
        a_pod("a").with_gpus(1)._changed("metadata", namespace="cellgate-system"),
        a_pod("a").with_gpus(1).of_class("system-node-critical"),
    ],
    ids=["mirror pod", "pod of a DaemonSet", "kube-system", "cellgate-system", "system class"],
)
def test_pods_of_the_cluster_are_protected(pod: PodBuilder) -> None:
    assert is_protected(pod)
    assert is_protected(trim_pod(pod))


@pytest.mark.parametrize(
    "pod",
    [a_pod("a"), a_pod("a").of_class("prod"), _owned(), _owned(kind="Job", controller=True)],
    ids=["plain", "of a class", "owned and not controlled", "of a Job"],
)
def test_other_pods_are_not(pod: PodBuilder) -> None:
    assert not is_protected(pod)
