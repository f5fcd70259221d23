"""The Shaping document: which pods a shape matches, and what it may not say."""

import re

import pytest

from policy.errors import SpecError
from policy.parser import parse_document
from policy.shaping import Mount, label_of
from policy.submission import UserName
from tests.support.policy.documents import HEAD, an_origin, shapes_of

SAMPLE = f"""{HEAD}Shaping
shapes:
- name: train
  vc: ^lab$
  group: ^vision$
  labels: {{purpose: train}}
  nodeSelector: {{org: vision, train: "true"}}
  tolerations: [{{key: train, value: "true", effect: NoSchedule}}]
  requests: {{cpu: 8, memory: 32Gi}}
  mounts:
  - {{path: /mnt, persistentVolumeClaim: workspace, subPath: "{{user}}"}}
  - {{path: /dev/shm, memory: 4Gi}}
  maxRunSeconds: 86400
- {{name: all, imagePullSecrets: [hub]}}
"""


def _problems(shapes: str) -> list[str]:
    with pytest.raises(SpecError) as raised:
        parse_document(f"{HEAD}Shaping\nshapes:\n{shapes}")
    return [str(problem) for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("vc", "groups", "labels", "matching"),
    [
        ("lab", ("vision", "b"), {"purpose": "train", "more": "x"}, ["train", "all"]),
        ("lab2", ("vision",), {"purpose": "train"}, ["all"]),
        ("lab", ("visions",), {"purpose": "train"}, ["all"]),
        ("lab", (), {"purpose": "train"}, ["all"]),
        ("lab", ("vision",), {"purpose": "notebook"}, ["all"]),
        ("lab", ("vision",), {}, ["all"]),
    ],
)
def test_a_shape_matches_if_all_it_says_is_true(
    vc: str, groups: tuple[str, ...], labels: dict[str, str], matching: list[str]
) -> None:
    found = shapes_of(SAMPLE).matching(an_origin(vc=vc, groups=groups, labels=labels))
    assert [shape.name for shape in found] == matching


@pytest.mark.parametrize(
    ("user", "folder"),
    [
        ("alice", "home/alice"),
        ("alice@corp.example", "home/alice@corp.example"),
        ("system:serviceaccount:a:b", "home/system:serviceaccount:a:b"),
        ("../bob", "home/..%2Fbob"),
        ("a%2Fb", "home/a%252Fb"),
        ("..", "home/%2E%2E"),
    ],
)
def test_every_submitter_has_a_folder_of_its_own(user: str, folder: str) -> None:
    mount = Mount(path="/mnt", source={}, origin="", sub_path="home/{user}")
    assert mount.sub_path_of(UserName(user)) == folder


def test_all_that_is_wrong_is_told_with_its_path() -> None:
    assert _problems(
        """
- name: A_b
  nodeSelector: {org: 1}
  requests: {nvidia.com/gpu: 4, cpu: many}
  maxRunSeconds: 0
"""
    ) == [
        'shapes[0].name: must be lower-case letters, digits and -, not "A_b"',
        "shapes[0].nodeSelector.org: must be a label's value, not 1",
        'shapes[0].requests["nvidia.com/gpu"]: must be cpu, memory or ephemeral-storage, '
        'not "nvidia.com/gpu"',
        'shapes[0].requests.cpu: must be a quantity such as 4, "500m" or 16Gi, not "many"',
        "shapes[0].maxRunSeconds: must be at least 1, not 0",
    ]


def test_a_label_has_a_prefix_that_kubernetes_takes() -> None:
    (problem,) = _problems(f"- {{name: a, nodeSelector: {{{'a' * 254}/b: x}}}}")
    assert "must be the key of a label" in problem


def test_what_no_field_says_alone_is_told_too() -> None:
    assert _problems(
        """
- {name: a, vc: x}
- {name: a, imagePullSecrets: [hub]}
- name: b
  tolerations: [{operator: Exists, value: x}, {}, {key: a, tolerationSeconds: 0}]
  mounts: [{path: /a}, {path: /a, memory: 1Gi, configMap: x}]
"""
    ) == [
        "shapes[1].name: duplicate of shapes[0].name",
        "shapes[0]: has no effect on the pods that it matches",
        "shapes[2].tolerations[0]: operator Exists takes no value",
        "shapes[2].tolerations[1]: needs a key, or operator Exists to tolerate all taints",
        "shapes[2].tolerations[2]: tolerationSeconds needs effect NoExecute",
        "shapes[2].mounts[0]: must have exactly one of persistentVolumeClaim, configMap, "
        "hostPath, memory; it has none",
        "shapes[2].mounts[1]: must have exactly one of persistentVolumeClaim, configMap, "
        "hostPath, memory; not configMap, memory",
        "shapes[2].mounts[1].path: duplicate of shapes[2].mounts[0].path",
    ]


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        (
            "path: mnt, memory: 1Gi",
            'path: must be an absolute path without a colon, not "mnt"',
        ),
        ("path: /a/../b, memory: 1Gi", 'path: must not contain .., as "/a/../b" does'),
        ("path: /a, configMap: A", 'configMap: must be the name of an object, not "A"'),
        ("path: /a, configMap: a, subPath: ../x", 'subPath: must not contain .., as "../x" does'),
        (
            'path: /a, configMap: a, subPath: "{name}"',
            "subPath: may contain no other placeholder than {user}",
        ),
        (
            "path: /a, configMap: a, subPath: /x",
            'subPath: must be a relative path, not "/x"',
        ),
    ],
)
def test_a_mount_leads_where_it_says(mount: str, problem: str) -> None:
    assert _problems(f"- {{name: a, mounts: [{{{mount}}}]}}") == [f"shapes[0].mounts[0].{problem}"]


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        (
            "workspace(pvc):/mnt",
            {"persistentVolumeClaim": {"claimName": "workspace"}, "sub_path": "{user}"},
        ),
        ("4G(memory):/mnt", {"emptyDir": {"medium": "Memory", "sizeLimit": "4G"}}),
        ("kubernetes-config(configmap):/mnt", {"configMap": {"name": "kubernetes-config"}}),
        ("/data/k8s/x(hostpath):/mnt", {"hostPath": {"path": "/data/k8s/x"}}),
    ],
)
def test_a_mount_may_be_written_as_one_text(text: str, mount: dict[str, object]) -> None:
    document = f"{HEAD}Shaping\nallowed: {{hostPaths: [/data]}}\nshapes: "
    (shape,) = shapes_of(f'{document}[{{name: a, mounts: ["{text}"]}}]').matching(an_origin())
    (built,) = shape.mounts
    source = {**built.source, **({"sub_path": built.sub_path} if built.sub_path else {})}
    assert (built.path, source) == ("/mnt", mount)


@pytest.mark.parametrize(
    "text", ["work:/mnt", "work(nfs):/mnt", "(pvc):/mnt", "work(pvc)", "a(pvc):/b(pvc):/c:d"]
)
def test_other_texts_are_no_mounts(text: str) -> None:
    (problem,) = _problems(f'- {{name: a, mounts: ["{text}"]}}')
    assert problem.startswith("shapes[0].mounts[0]")


@pytest.mark.parametrize(
    ("prefixes", "path", "is_allowed"),
    [
        ("[/data]", "/data", True),
        ("[/data]", "/data/sets", True),
        ("[/data/]", "/data//sets/", True),
        ("[/data]", "/database", False),
        ("[/data]", "/", False),
        ("[/data/a, /b]", "/b/./c", True),
        ("[/data/a]", "/data", False),
        ("[]", "/data", False),
        ("[/]", "/etc", True),
    ],
)
def test_directories_of_nodes_are_below_those_that_are_allowed(
    prefixes: str, path: str, is_allowed: bool
) -> None:
    text = f"{HEAD}Shaping\nallowed: {{hostPaths: {prefixes}}}\nshapes: "
    text += f"[{{name: a, mounts: [{{path: /m, hostPath: {path}}}]}}]"
    if is_allowed:
        parse_document(text)
    else:
        with pytest.raises(SpecError, match="is not below one of allowed"):
            parse_document(text)


def test_what_gives_rights_is_allowed_by_name_and_not_by_a_label_alone() -> None:
    assert _problems(
        """
- {name: a, labels: {x: y}, serviceAccountName: root}
- {name: b, labels: {x: y}, group: ^ops$, mounts: ["/etc(hostpath):/etc"]}
- {name: c, fixedLeafCells: -1, env: {1A: x, B: 1}, imagePullSecrets: ["hub-{name}", "{user}_x"]}
"""
    ) == [
        "shapes[2].fixedLeafCells: must be at least 0, not -1",
        'shapes[2].env["1A"]: must be the name of a variable, not "1A"',
        "shapes[2].env.B: must be a text in quotes, not 1",
        "shapes[2].imagePullSecrets[0]: may contain no other placeholder than {user}",
        'shapes[2].imagePullSecrets[1]: must be the name of an object, not "u_x"',
        'shapes[0].serviceAccountName: "root" is not one of allowed.serviceAccounts (none)',
        "shapes[0]: gives serviceAccountName to every submitter who writes these labels; name "
        "its user, group, vc or namespace, too",
        'shapes[1].mounts[0].hostPath: "/etc" is not below one of allowed.hostPaths (none)',
    ]


def test_fixed_at_no_leaf_cells_is_an_effect() -> None:
    parse_document(f"{HEAD}Shaping\nshapes: [{{name: a, fixedLeafCells: 0}}]")


@pytest.mark.parametrize(
    ("user", "label"),
    [
        ("alice", "alice"),
        ("a-1", "a-1"),
        ("alice@corp.example", "alice-corp-example-169009fb1174"),
        ("..", "user-"),
        ("system:serviceaccount:a:b", "system-serviceaccount-a-b-"),
        ("x" * 64, "x" * 50 + "-"),
        ("Alice", "alice-"),
        ("alice-0123456789ab", "alice-0123456789ab-"),
    ],
)
def test_a_submitter_is_a_label_of_its_own(user: str, label: str) -> None:
    found = label_of(UserName(user))
    assert found.startswith(label)
    assert re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", found)
    assert (found == user) == (label == user)


def test_without_a_known_submitter_only_shapes_for_all_match() -> None:
    shapes = shapes_of(
        f"""{HEAD}Shaping
shapes:
- {{name: a, user: ., requests: {{cpu: 1}}}}
- {{name: b, group: ., requests: {{cpu: 1}}}}
- {{name: c, mounts: ["w(pvc):/mnt"]}}
- {{name: d, imagePullSecrets: ["hub-{{user}}"]}}
- {{name: e, vc: ., requests: {{cpu: 1}}}}
- {{name: f, requests: {{cpu: 1}}}}
"""
    )
    names = [one.name for one in shapes.matching(an_origin(user=None, vc=None))]
    assert names == ["f"]
