"""The Cluster document among the others: found by its label, in force as long as it is good."""

import pytest

from policy.cluster.derived import DerivedClusterDocument
from policy.cluster.document import ClusterDocument
from policy.cluster.hived import HivedClusterDocument
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document, parse_label
from policy.store import PolicyStore, PolicyText, build_policy, list_problems
from tests.support.policy.cluster_texts import hived, problems_of, topology_of
from tests.support.policy.documents import HEAD

DERIVED = f"""{HEAD}Cluster
nodeTopology:
- {{levels: [kubernetes.io/hostname], leafResource: gpu, leafTypeLabel: type}}
"""


def a_text(text: str, *, kind: DocumentKind = DocumentKind.CLUSTER) -> PolicyText:
    return PolicyText(kind=kind, source=f"cm/{kind.label}", text=text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (hived(), HivedClusterDocument),
        (f"{HEAD}Cluster\n{hived()}", HivedClusterDocument),
        (DERIVED, DerivedClusterDocument),
    ],
    ids=["HiveD's", "HiveD's with our head", "derived"],
)
def test_the_form_is_told_by_the_keys(text: str, form: type[ClusterDocument]) -> None:
    assert type(parse_document(text, kind=parse_label("cluster"))) is form
    assert type(parse_document(text)) is form


def test_our_head_changes_nothing() -> None:
    assert topology_of(f"{HEAD}Cluster\n{hived()}") == topology_of(hived())


def test_another_kind_is_no_cluster() -> None:
    assert problems_of(f"{HEAD}Rules\nrules: []\n") == [
        "kind: must be Cluster, not Rules, because the ConfigMap is labelled cellgate.io/policy: "
        "cluster"
    ]
    assert problems_of(f"{HEAD}Rules\n{hived()}") == ['kind: must be Cluster, not "Rules"']
    assert problems_of(f"{HEAD}Cluster\n") == ["nodeTopology: is required"]
    assert problems_of("- 1") == [
        "the document is a list; expected a mapping with apiVersion and kind"
    ]


def test_a_key_given_twice_is_told() -> None:
    text = hived().replace("virtualClusters: {}", "virtualClusters: {vc: {}, vc: {}}")
    (problem,) = problems_of(text)
    assert problem.startswith("virtualClusters.vc: the key is given twice")


def test_the_policy_holds_the_cluster() -> None:
    policy = build_policy([a_text(hived())])
    assert policy.cluster is not None
    assert list(policy.cluster.build().topology.chains) == ["POOL"]
    assert build_policy([]).cluster is None


def test_the_version_goes_by_what_the_cluster_means() -> None:
    version = build_policy([a_text(hived())]).version
    assert build_policy([a_text(f"webServerAddress: x\n{hived()}  # same")]).version == version
    assert build_policy([a_text(hived().replace("n1", "n2"))]).version != version


def test_a_bad_cluster_leaves_the_last_good_one() -> None:
    store = PolicyStore()
    store.update([a_text(hived())])
    bad = hived(vcs="{vc: {virtualCells: [{cellType: POOL, cellNumber: 2}]}}")
    policy = store.update([a_text(bad)])
    assert policy.cluster is not None
    assert policy.cluster.build().topology.vcs == {}
    assert [str(problem) for problem in list_problems(store.problems)] == [
        'cm/cluster: virtualClusters: chain "POOL", level 4 ("POOL"): 2 cells promised ("vc": 2), '
        "but only 1 of 1 can be given"
    ]
    with pytest.raises(SpecError):
        build_policy([a_text(bad)])
