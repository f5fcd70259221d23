"""The Identity document: groups, VCs, trusted controllers, templates."""

import pytest

from policy.errors import RequestError, SpecError
from policy.identity.identity import Identity, TemplateKind
from policy.parser import DocumentKind
from policy.store import PolicyText, build_policy
from policy.submission import GroupName, UserName, VcName
from tests.support.policy.documents import HEAD

SAMPLE = f"""{HEAD}Identity
groups: {{vision: [alice, bob, carol], nlp: [alice]}}
vcs: {{lab: {{groups: [vision], users: [dave]}}}}
trustedControllers: ["system:serviceaccount:kubeflow:training-operator"]
templates:
- {{apiVersion: kubeflow.org/v1, kind: PyTorchJob, path: "spec.pytorchReplicaSpecs.*.template"}}
"""


def identity(text: str) -> PolicyText:
    return PolicyText(kind=DocumentKind.IDENTITY, source="cm/identity", text=text)


def _sample() -> Identity:
    return build_policy([identity(SAMPLE)]).identity


def _problems(*texts: PolicyText) -> list[str]:
    with pytest.raises(SpecError) as raised:
        build_policy(texts)
    return [str(problem) for problem in raised.value.problems]


def test_groups_are_added_to_those_that_the_api_server_knows() -> None:
    assert _sample().groups_of("alice", ["b", "vision"]) == ("b", "nlp", "vision")
    assert _sample().groups_of("zoe", ["b", "", "a"]) == ("a", "b")


@pytest.mark.parametrize(
    ("user", "groups", "is_open"),
    [("dave", [], True), ("zoe", ["vision"], True), ("zoe", ["nlp"], False), ("lab", [], False)],
)
def test_a_vc_that_is_listed_is_open_to_its_groups_and_users_only(
    user: str, groups: list[str], is_open: bool
) -> None:
    def check(vc: str) -> None:
        names = tuple(map(GroupName, groups))
        _sample().check_vc(VcName(vc), user=UserName(user), groups=names, path="vc")

    check("anything else")
    if is_open:
        check("lab")
        return
    with pytest.raises(RequestError) as raised:
        check("lab")
    told = f'vc: VC "lab" is not open to "{user}"; it is open to groups vision and users dave'
    assert str(raised.value) == told


def test_controllers_of_kubernetes_and_listed_ones_are_trusted() -> None:
    trusted = [
        "system:serviceaccount:kubeflow:training-operator",
        "system:serviceaccount:kube-system:job-controller",
        "system:kube-controller-manager",
    ]
    others = ["alice", "system:serviceaccount:kube-system:default", "system:serviceaccount:x:y"]
    assert [name for name in trusted + others if _sample().is_trusted(name)] == trusted


def test_templates_are_those_of_kubernetes_and_listed_ones() -> None:
    assert _sample().find_templates(api_version="kubeflow.org/v1", kind="PyTorchJob") == (
        TemplateKind(
            "kubeflow.org/v1", "PyTorchJob", ("spec", "pytorchReplicaSpecs", "*", "template")
        ),
    )
    assert _sample().find_templates(api_version="batch/v1", kind="CronJob") == (
        TemplateKind("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    )
    assert _sample().find_templates(api_version="v1", kind="Pod") == ()


def test_all_problems_are_told_at_once() -> None:
    text = f"""{HEAD}Identity
groups: {{vision: [alice, 5], "": [x]}}
vcs: {{lab: {{}}, big: {{group: [a]}}}}
trustedControllers: "x"
templates:
- {{apiVersion: batch/v1, kind: Job, path: "spec..template"}}
- {{apiVersion: "Bad/v1", kind: job, path: 5}}
"""
    assert _problems(identity(text)) == [
        "cm/identity: groups.vision[1]: must be a name in quotes, not 5",
        'cm/identity: groups[""]: must be a name without spaces around it, not ""',
        "cm/identity: vcs.big.group: unknown key; known keys are groups, users",
        'cm/identity: trustedControllers: must be a list, not "x"',
        "cm/identity: templates[0].path: must be a path such as "
        '"spec.pytorchReplicaSpecs.*.template", not "spec..template"',
        'cm/identity: templates[1].apiVersion: must be such as "kubeflow.org/v1", not "Bad/v1"',
        'cm/identity: templates[1].kind: must be such as "PyTorchJob", not "job"',
        "cm/identity: templates[1].path: must be a path such as "
        '"spec.pytorchReplicaSpecs.*.template", not 5',
        "cm/identity: vcs.lab: names neither groups nor users, so no user could use the VC",
        "cm/identity: vcs.big: names neither groups nor users, so no user could use the VC",
        "cm/identity: templates[0]: Job of Kubernetes is built in; remove the entry",
    ]


def test_with_a_cluster_document_only_its_vcs_are_known() -> None:
    text = f"""{HEAD}Cluster
nodeTopology:
- {{levels: [kubernetes.io/hostname], leafResource: nvidia.com/gpu, leafTypeLabel: type}}
virtualClusters: {{lab: {{}}, other: {{}}}}
"""
    cluster = PolicyText(kind=DocumentKind.CLUSTER, source="cm/cluster", text=text)
    assert _problems(identity(SAMPLE.replace("lab:", "nowhere:")), cluster) == [
        'cm/identity: vcs.nowhere: the Cluster document has no VC "nowhere"'
    ]
    known = build_policy([cluster]).identity
    with pytest.raises(RequestError, match='there is no VC "nowhere"; VCs open to you: lab, other'):
        known.check_vc(VcName("nowhere"), user=UserName("a"), groups=(), path="")
