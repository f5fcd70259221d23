"""What shapes set on pods, and the warnings about it."""

from typing import Any

import pytest

from kube.shaping.shaper import Shaped, shape_pod
from policy.errors import RequestError
from policy.submission import UserName
from simulation.objects.patch import json_patch
from tests.support.kube.pods import a_pod
from tests.support.policy.documents import HEAD, an_origin, shapes_of
from tests.support.webhook.review_requests import a_review
from tests.support.webhook.reviews import Webhook

ALICE = UserName("alice")


def a_spec(**more: Any) -> dict[str, Any]:
    main = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {"containers": [main, {"name": "side"}], **more}


ALLOWED = "allowed: {hostPaths: [/home], serviceAccounts: [runner]}"


def shape(spec: dict[str, Any], shapes: str, *, listed: str | None = None) -> Shaped:
    found = shapes_of(f"{HEAD}Shaping\n{ALLOWED}\nshapes:\n{shapes}").matching(an_origin())
    annotations = {} if listed is None else {"cellgate.io/shaped": listed}
    pod = {"metadata": {"annotations": annotations}, "spec": spec}
    return shape_pod(pod, found, user=ALICE)


def shaped_spec(spec: dict[str, Any], shapes: str) -> dict[str, Any]:
    shaped = json_patch({"spec": spec}, list(shape(spec, shapes).patch))
    assert isinstance(shaped["spec"], dict)
    return shaped["spec"]


EVERYTHING = """
- name: train
  nodeSelector: {org: vision}
  tolerations: [{key: train, value: "true", effect: NoSchedule}]
  requests: {cpu: 8}
  fixedRequests: {memory: 32Gi}
  mounts:
  - {path: /mnt, persistentVolumeClaim: work, subPath: "{user}"}
  - {path: /dev/shm, memory: 4Gi}
  imagePullSecrets: [hub]
  maxRunSeconds: 3600
"""
LAUNCHER = """
- name: launcher
  fixedLeafCells: 0
  fixedRequests: {cpu: 2}
  env: {A: x, B: y}
  command: [/opt/launch]
  args: [--all]
  workingDir: /mnt
  serviceAccountName: runner
  imagePullSecrets: ["hub-{user}"]
"""
LINES = [
    "train: nodeSelector org=vision",
    "train: tolerations key=train operator=Equal value=true effect=NoSchedule",
    "train: imagePullSecrets name=hub",
    "train: memory 32Gi for container main, fixed",
    "train: cpu 8 for container main",
    "train: mount /mnt from persistentVolumeClaim work",
    "train: mount /dev/shm from memory 4Gi",
    "train: activeDeadlineSeconds 3600",
]


def test_a_pod_gets_all_that_its_shape_gives() -> None:
    mounts = [
        {"name": "cellgate-train-0", "mountPath": "/mnt", "subPath": "alice"},
        {"name": "cellgate-train-1", "mountPath": "/dev/shm"},
    ]
    requests = {"memory": "32Gi", "cpu": "8"}
    resources = {"limits": {"nvidia.com/gpu": "1"}, "requests": requests}
    assert shaped_spec(a_spec(), EVERYTHING) == {
        "containers": [
            {"name": "main", "resources": resources, "volumeMounts": mounts},
            {"name": "side", "volumeMounts": mounts},
        ],
        "nodeSelector": {"org": "vision"},
        "tolerations": [
            {"key": "train", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
        ],
        "imagePullSecrets": [{"name": "hub"}],
        "volumes": [
            {"name": "cellgate-train-0", "persistentVolumeClaim": {"claimName": "work"}},
            {
                "name": "cellgate-train-1",
                "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"},
            },
        ],
        "activeDeadlineSeconds": 3600,
    }
    assert shape(a_spec(), EVERYTHING).lines == LINES
    assert shape(a_spec(), EVERYTHING).warnings == []


def test_shaping_again_changes_nothing_and_tells_the_same() -> None:
    once = shaped_spec(a_spec(), EVERYTHING)
    again = shape(once, EVERYTHING, listed="\n".join(LINES))
    assert again.patch == []
    assert again.lines == LINES


def test_a_submitter_cannot_list_what_no_shape_gave() -> None:
    spec = a_spec(nodeSelector={"org": "vision"})
    shapes = "- {name: train, nodeSelector: {org: vision}}"
    assert shape(spec, shapes, listed="train: nodeSelector org=other\nroot: all").lines == []


def test_what_the_submitter_says_counts_where_a_shape_only_fills_gaps() -> None:
    limits = {"nvidia.com/gpu": "1", "memory": "1Gi"}
    main = {
        "name": "main",
        "resources": {"limits": limits, "requests": {"cpu": "2"}},
        "volumeMounts": [{"name": "own", "mountPath": "/mnt"}],
    }
    spec = {"containers": [main], "activeDeadlineSeconds": 60}
    shapes = """
- name: train
  requests: {cpu: 8, memory: 32Gi}
  mounts: [{path: /mnt, persistentVolumeClaim: work}]
  maxRunSeconds: 3600
"""
    assert shaped_spec(spec, shapes) == spec
    assert shape(spec, shapes).lines == []


def test_a_request_that_a_shape_replaces_leads_to_a_warning() -> None:
    limits = {"nvidia.com/gpu": "1", "cpu": "16"}
    main = {"name": "main", "resources": {"limits": limits, "requests": {"cpu": "16"}}}
    spec = {"containers": [main], "activeDeadlineSeconds": 7200}
    shapes = "- {name: small, fixedRequests: {cpu: 4}, maxRunSeconds: 3600}"
    shaped = shaped_spec(spec, shapes)
    assert shaped["containers"][0]["resources"] == {
        "limits": {"nvidia.com/gpu": "1", "cpu": "4"},
        "requests": {"cpu": "4"},
    }
    assert shape(spec, shapes).warnings == [
        "cellgate: shape small sets cpu 4 for container main instead of the requested 16",
        "cellgate: shape small sets activeDeadlineSeconds 3600 instead of the requested 7200",
    ]


def test_a_pod_cannot_ask_as_a_whole_for_what_a_shape_fixes() -> None:
    """Kubernetes counts what a pod asks for as a whole, and not what its containers do."""
    whole = {"requests": {"memory": "1Ti", "cpu": "4"}, "limits": {"memory": "2Ti"}}
    shapes = "- {name: small, fixedRequests: {memory: 4Gi}}"
    assert shaped_spec(a_spec(resources=whole), shapes)["resources"] == {"requests": {"cpu": "4"}}
    assert shape(a_spec(resources=whole), shapes).warnings == [
        "cellgate: shape small sets memory for each container "
        "instead of the requested 2Ti for the pod"
    ]
    only = a_spec(resources={"limits": {"memory": "2Ti"}})
    assert "resources" not in shaped_spec(only, shapes)


def test_a_default_leaves_a_pod_alone_that_asks_as_a_whole() -> None:
    """Containers that ask for more than their pod would make it invalid."""
    spec = a_spec(resources={"requests": {"memory": "1Gi"}})
    shaped = shaped_spec(spec, "- {name: large, requests: {memory: 8Gi, cpu: 2}}")
    assert shaped["resources"] == spec["resources"]
    assert shaped["containers"][0]["resources"]["requests"] == {"cpu": "2"}


async def test_the_author_of_a_template_reads_what_its_pods_will_get() -> None:
    shapes = "[{name: small, fixedRequests: {memory: 4Gi}}]"
    webhook = Webhook({"shaping": f"{HEAD}Shaping\nshapes: {shapes}"})
    pod = a_pod().with_container({"nvidia.com/gpu": "1", "memory": "1Ti"}, name="train")
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "lab"}}
    template = {"metadata": {}, "spec": pod["spec"]}
    answer = await webhook.templates.mutate(a_review({**job, "spec": {"template": template}}))
    assert answer.warnings == [
        "cellgate: shape small sets memory 4Gi for container train instead of the requested 1Ti"
    ]


def test_a_pod_that_wants_to_go_elsewhere_is_refused() -> None:
    spec = a_spec(nodeSelector={"org": "nlp", "zone": "b"})
    shapes = "- {name: train, nodeSelector: {org: vision, zone: a}}"
    with pytest.raises(RequestError) as raised:
        shape(spec, shapes)
    told = "but shape train requires"
    assert [str(problem) for problem in raised.value.problems] == [
        f'spec.nodeSelector[org]: is "nlp", {told} "vision"; leave it out',
        f'spec.nodeSelector[zone]: is "b", {told} "a"; leave it out',
    ]


def test_of_two_shapes_the_first_counts_and_the_shortest_time() -> None:
    shapes = """
- name: a
  nodeSelector: {org: x}
  fixedRequests: {cpu: 1}
  mounts: [{path: /m, memory: 1Gi}]
  maxRunSeconds: 60
- name: b
  nodeSelector: {org: y}
  requests: {cpu: 2}
  mounts: [{path: /m, memory: 2Gi}]
  maxRunSeconds: 30
"""
    shaped = shape(a_spec(), shapes)
    assert shaped.lines == [
        "a: nodeSelector org=x",
        "a: cpu 1 for container main, fixed",
        "a: mount /m from memory 1Gi",
        "a: activeDeadlineSeconds 60",
        "b: activeDeadlineSeconds 30",
    ]
    assert shaped.warnings == []
    assert shaped_spec(a_spec(), shapes)["activeDeadlineSeconds"] == 30


def test_our_name_of_a_volume_is_ours() -> None:
    spec = a_spec(volumes=[{"name": "cellgate-a-0", "emptyDir": {}}, {"name": "own"}])
    shapes = "- {name: a, mounts: [{path: /m, configMap: c, readOnly: true}]}"
    shaped = shaped_spec(spec, shapes)
    assert shaped["volumes"] == [
        {"name": "own"},
        {"name": "cellgate-a-0", "configMap": {"name": "c"}},
    ]
    mount = {"name": "cellgate-a-0", "mountPath": "/m", "readOnly": True}
    assert shaped["containers"][1] == {"name": "side", "volumeMounts": [mount]}


def test_a_sidecar_with_leaf_cells_is_shaped_too() -> None:
    limits = {"nvidia.com/gpu": "1", "memory": "1Ti"}
    sidecar = {"name": "side", "restartPolicy": "Always", "resources": {"limits": limits}}
    spec = {"containers": [{"name": "main"}], "initContainers": [sidecar]}
    shaped = shaped_spec(spec, "- {name: small, fixedRequests: {memory: 4Gi}}")
    assert shaped["initContainers"][0]["resources"]["limits"]["memory"] == "4Gi"


def test_a_volume_of_a_shape_is_mounted_nowhere_else() -> None:
    main = {"name": "main", "volumeMounts": [{"name": "cellgate-home-0", "mountPath": "/all"}]}
    shapes = '- {name: home, mounts: [{path: /mnt, hostPath: /home, subPath: "{user}"}]}'
    with pytest.raises(RequestError) as raised:
        shape({"containers": [main]}, shapes)
    told = "spec.containers[main].volumeMounts: only shape home may mount volume cellgate-home-0"
    assert str(raised.value) == told


@pytest.mark.parametrize(
    "garbage",
    [
        {"nodeSelector": 5, "tolerations": "x", "volumes": {}, "imagePullSecrets": [7]},
        {"activeDeadlineSeconds": "soon", "initContainers": ["x", 3]},
        {"containers": [{"resources": 5, "volumeMounts": "x"}], "resources": 5},
        {"resources": {"requests": 5, "limits": {"memory": {}}}},
        {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}, "requests": 3}}]},
    ],
)
def test_garbage_does_no_harm(garbage: dict[str, Any]) -> None:
    shaped = shape({**a_spec(), **garbage}, EVERYTHING)
    assert "train: nodeSelector org=vision" in shaped.lines


async def test_a_review_shapes_and_lists_it_on_the_pod() -> None:
    webhook = Webhook({"shaping": f"{HEAD}Shaping\nshapes:{EVERYTHING}"})
    pod = a_pod("bert").with_gpus(1)
    answer = await webhook.pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    listed = stored["metadata"]["annotations"]["cellgate.io/shaped"].split("\n")
    assert listed[0] == "train: nodeSelector org=vision"
    assert stored["spec"]["nodeSelector"] == {"org": "vision"}


async def test_what_a_submitter_lists_itself_is_taken_away() -> None:
    pod = a_pod("bert").with_gpus(1).annotated("cellgate.io/shaped", "all mine")
    answer = await Webhook().pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    assert "cellgate.io/shaped" not in stored["metadata"]["annotations"]


def test_a_launcher_gets_its_command_account_and_variables() -> None:
    own = [{"name": "A", "value": "own"}]
    init = {"name": "prepare", "env": own}
    main = {"name": "main", "command": ["sh"], "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    spec = {
        "containers": [main, {"name": "side"}],
        "initContainers": [init],
        "serviceAccountName": "mine",
        "serviceAccount": "mine",
    }
    shaped = shaped_spec(spec, LAUNCHER)
    variables = [{"name": "B", "value": "y"}, {"name": "A", "value": "x"}]
    assert shaped == {
        "containers": [
            {
                "name": "main",
                "command": ["/opt/launch"],
                "args": ["--all"],
                "workingDir": "/mnt",
                "env": variables,
                "resources": {"requests": {"cpu": "2"}},
            },
            {"name": "side", "env": variables},
        ],
        "initContainers": [{"name": "prepare", "env": [variables[0], *own]}],
        "serviceAccountName": "runner",
        "serviceAccount": "runner",
        "imagePullSecrets": [{"name": "hub-alice"}],
    }
    once = shape(spec, LAUNCHER)
    assert once.lines == [
        "launcher: imagePullSecrets name=hub-alice",
        "launcher: serviceAccountName runner",
        "launcher: leaf cells 0, fixed",
        "launcher: cpu 2 for container main, fixed",
        "launcher: env A",
        "launcher: env B",
        "launcher: command of container main",
        "launcher: args of container main",
        "launcher: workingDir of container main",
    ]
    assert once.warnings == [
        'cellgate: shape launcher sets serviceAccountName runner instead of the requested "mine"',
        "cellgate: shape launcher sets leaf cells 0 instead of the requested 2",
        "cellgate: shape launcher sets command of container main instead of its own",
    ]
    again = shape(shaped, LAUNCHER, listed="\n".join(once.lines))
    assert (again.patch, again.lines, again.warnings) == ([], once.lines, [])
