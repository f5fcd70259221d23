"""AdmissionReviews that start out well and are then damaged, in a reproducible way."""

import copy
import json
import random
from typing import Any, Final

from kube import marks
from kube.hived.spec import HivedSpec, format_spec
from policy.submission import VcName

JUNK: Final[list[Any]] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 1.5, 1e308, "", " ", "x", "\x00", "\ud7ff",
    "é", "a" * 300, "-1", "1e9", "9" * 40, "../..", "{}", "[]", "*", "null", [], {}, [None], [[]],
    {"": ""}, {"name": None}, {"a/b~c": {"d": [1, {"e": "f"}]}}, "cellgate.io/queued", "prod",
    "system:serviceaccount:kube-system:job-controller",
]  # fmt: skip
KEYS: Final = [
    "metadata", "spec", "labels", "annotations", "containers", "resources", "limits", "name",
    "generateName", "namespace", "priorityClassName", "priority", "schedulingGates", "template",
    "schedulingGroup", "ownerReferences", "uid", "data", "policy.yaml", "kind", "apiVersion",
    marks.VC_LABEL, marks.GROUP_LABEL, marks.GANG_LABEL, marks.GANG_SIZE_LABEL,
    marks.LEAF_TYPE_LABEL, marks.SUBMITTER_ANNOTATION, marks.SUBMITTER_GROUPS_ANNOTATION,
    marks.HIVED_SPEC_ANNOTATION, marks.DECISION_ANNOTATION, marks.PLACEMENT_ANNOTATION,
    marks.POLICY_LABEL, "nvidia.com/gpu", "x",
]  # fmt: skip
_PIECES: Final = [
    "'", '"', "{", "}", "[", "]", ": ", "- ", "&x ", "*x", "!", "\n", "---\n", "%", "\t", "((",
    "a{1000}", "-1", "null", "\\", "x" * 99,
]  # fmt: skip
USERS: Final = [
    "alice", "bob", "carol", "mallory", "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:cellgate-system:cellgate-extender",
]  # fmt: skip
_DOCUMENTS: Final = [
    ("rules", "apiVersion: cellgate.io/v1\nkind: Rules\nrules:\n- {user: '^a', occupied: '> 4', "
     "when: \"'x' in groups\", then: oppo, note: n}\n"),
    ("quotas", "apiVersion: cellgate.io/v1\nkind: Quotas\ngroups:\n- name: vision\n  limits: "
     "{leafCells: 8, byLeafType: {A: 1}}\n  over: oppo\n  users: [{name: alice}]\n"),
    ("identity", "apiVersion: cellgate.io/v1\nkind: Identity\ngroups: {v: [a]}\nvcs: {lab: {users: "
     "[a]}}\ntemplates: [{apiVersion: a.b/v1, kind: Job, path: spec.*}]\n"),
    ("classes", "apiVersion: cellgate.io/v1\nkind: Classes\nclasses: [{name: prod, cellPriority: "
     "1}]\ndefault: prod\n"),
]  # fmt: skip


class Fuzzer:
    """Makes one request body after the other."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def next(self) -> tuple[str, bytes, dict[str, Any]]:
        """Return a path, a body, and the object in it ({} if that is not known any more)."""
        dice = self._dice
        path = dice.choice(
            ["/mutate/pods", "/mutate/pods", "/mutate/templates", "/validate/pods",
             "/validate/bindings", "/validate/policies"]
        )  # fmt: skip
        obj = self._object(path)
        for _ in range(dice.choice([0, 1, 1, 2, 3, 6])):
            self._damage(obj)
        old = copy.deepcopy(obj) if dice.random() < 0.3 else None
        if old is not None:
            self._damage(obj)
        body = json.dumps({"request": self._request(obj, old)}).encode()
        if dice.random() < 0.05:
            return path, self._damage_bytes(body), {}
        return path, body, obj

    def next_pod(self) -> dict[str, Any]:
        """Return a pod that is a little strange."""
        pod = self._pod()
        pod["metadata"]["name"] = f"p{self._dice.getrandbits(40)}"
        pod["spec"]["containers"][0]["image"] = "any"
        for computed in ("priority", "preemptionPolicy"):
            del pod["spec"][computed]
        for _ in range(self._dice.choice([0, 1, 1, 2])):
            self._damage(pod)
        return pod

    def _request(self, obj: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
        dice = self._dice
        request = {
            "uid": f"{dice.getrandbits(128):032x}",
            "operation": "UPDATE" if old is not None else "CREATE",
            "namespace": dice.choice(["lab", "vision", ""]),
            "name": dice.choice(["", "bert"]),
            "userInfo": {
                "username": dice.choice(USERS),
                "groups": dice.sample(["a", "vision", ""], 2),
            },
            "object": obj,
            "oldObject": old,
            "dryRun": dice.random() < 0.1,
        }
        if dice.random() < 0.05:
            self._damage(request)
        return request

    def _object(self, path: str) -> dict[str, Any]:
        dice = self._dice
        if path == "/validate/policies":
            kind, text = dice.choice(_DOCUMENTS)
            labels = {marks.POLICY_LABEL: kind}
            damaged = self._damage_text(text) if dice.random() < 0.7 else text
            return {
                "metadata": {"name": f"cellgate-{kind}", "labels": labels},
                "data": {"policy.yaml": damaged},
            }
        pod = self._pod()
        if path != "/mutate/templates":
            return pod
        kind, version = dice.choice(
            [("Job", "batch/v1"), ("Deployment", "apps/v1"), ("CronJob", "batch/v1"),
             ("PodGroup", "scheduling.k8s.io/v1beta1"), ("PyTorchJob", "kubeflow.org/v1")]
        )  # fmt: skip
        spec: dict[str, Any] = {"template": pod}
        if kind == "CronJob":
            spec = {"jobTemplate": {"spec": spec}}
        if kind == "PyTorchJob":
            spec = {"pytorchReplicaSpecs": {"Worker": spec, "Master": spec}}
        if kind == "PodGroup":
            gang = {"gang": {"minCount": 2}}
            spec = {"priorityClassName": "prod", "schedulingPolicy": gang}
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}

    def _pod(self) -> dict[str, Any]:
        dice = self._dice
        labels = dice.choice(
            [{}, {marks.VC_LABEL: "lab"}, {marks.GANG_LABEL: "g", marks.GANG_SIZE_LABEL: "2"}]
        )
        annotations = {"mine": "1"} if dice.random() < 0.5 else {}
        if dice.random() < 0.2:
            spec = HivedSpec(vc=VcName("lab"), leaf_count=dice.choice([1, 8]))
            annotations[marks.HIVED_SPEC_ANNOTATION] = format_spec(spec)
        if dice.random() < 0.2:
            annotations[marks.SUBMITTER_ANNOTATION] = dice.choice(USERS)
        name = {"generateName": "bert-"} if dice.random() < 0.3 else {"name": f"p{dice.random()}"}
        resources = {"limits": {"nvidia.com/gpu": dice.choice(["1", "8", 4])}}
        return {
            "metadata": {
                "namespace": "lab",
                "labels": dict(labels),
                "annotations": annotations,
                **name,
            },
            "spec": {
                "containers": [{"name": "main", "resources": resources}],
                "priority": 0,
                "preemptionPolicy": "Never",
                "priorityClassName": dice.choice(["", "prod", "oppo", "unknown"]),
            },
        }

    def _damage(self, value: Any) -> None:
        """Change one place somewhere inside, in place."""
        dice = self._dice
        while True:
            inner = [one for one in _children(value) if isinstance(one, dict | list)]
            if not inner or dice.random() < 0.3:
                break
            value = dice.choice(inner)
        junk = copy.deepcopy(dice.choice(JUNK))
        if isinstance(value, list):
            if value and dice.random() < 0.5:
                value[dice.randrange(len(value))] = junk
            else:
                value.append(junk)
        elif isinstance(value, dict):
            known = list(value) if value and dice.random() < 0.6 else KEYS
            key = dice.choice(known)
            if dice.random() < 0.2:
                value.pop(key, None)
            else:
                value[key] = junk

    def _damage_text(self, text: str) -> str:
        dice = self._dice
        for _ in range(dice.randint(1, 4)):
            start = dice.randrange(len(text) + 1)
            piece = dice.choice(_PIECES)
            text = text[:start] + piece + text[start + dice.randrange(8) :]
        return text

    def _damage_bytes(self, body: bytes) -> bytes:
        dice = self._dice
        start = dice.randrange(len(body))
        return body[:start] + bytes(dice.choices(range(256), k=3)) + body[start + 2 :]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []
