"""Whatever stands anywhere in a policy: problems with paths, and the same at apply as offline."""

import copy
import random
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.policy_files import build_from_files
from kube.follow.policies import PolicySink
from policy.errors import SpecError
from tests.support.kube.config_maps import a_policy_map
from tests.support.kube.events import KeptEvents

HEAD = {"apiVersion": "cellgate.io/v1"}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "classes": {
        **HEAD,
        "kind": "Classes",
        "classes": [
            {"name": "prod", "cellPriority": 100, "high": True},
            {"name": "oppo", "cellPriority": -1},
        ],
        "default": "prod",
    },
    "rules": {
        **HEAD,
        "kind": "Rules",
        "rules": [
            {"user": "^a", "priority": "prod", "occupied": "> 4", "then": "oppo", "note": "x"},
            {"when": "user == 'bob'", "then": "fail"},
        ],
    },
    "quotas": {
        **HEAD,
        "kind": "Quotas",
        "groups": [
            {
                "name": "vision",
                "admins": ["carol"],
                "limits": {"leafCells": 10, "leafCellHours": {"day": 5}, "byLeafType": {"A100": 1}},
                "over": "oppo",
                "users": [{"name": "alice", "limits": {"leafCells": 6}}],
            }
        ],
    },
    "identity": {
        **HEAD,
        "kind": "Identity",
        "groups": {"vision": ["alice"]},
        "vcs": {"lab": {"users": ["alice"]}},
        "trustedControllers": ["x"],
        "templates": [{"apiVersion": "a.io/v1", "kind": "K", "path": "spec.a.*.template"}],
    },
    "shaping": {
        **HEAD,
        "kind": "Shaping",
        "shapes": [
            {
                "name": "train",
                "labels": {"purpose": "train"},
                "tolerations": [{"key": "train", "operator": "Exists"}],
                "mounts": [{"path": "/dev/shm", "memory": "1Gi"}],
            }
        ],
    },
    "queues": {
        **HEAD,
        "kind": "Queues",
        "levels": [
            {
                "name": "a",
                "who": {"classes": ["prod"], "when": "leafCells <= 8"},
                "strategy": "fifo",
            },
            {
                "name": "b",
                "strategy": "formula",
                "worth": {"class": "1h"},
                "formula": "worth.class * class",
                "promoteAfter": "7d",
            },
        ],
        "userLevels": {"gold": ["alice"], "silver": []},
        "fairShare": {"halfLife": "7d", "weights": {"vision": 2}},
        "runTime": {"cap": "24h", "longest": {"default": "7d"}, "enforce": True},
        "reservation": {"perPool": 1, "after": "10m", "backfillQuantile": 0.9},
        "preemption": {"minimumRun": "30m"},
        "expectedStart": {"coverage": 0.8, "samples": 8},
    },
}
STRANGE: tuple[Any, ...] = (
    None, "", -1, 3.5, True, [], {}, "(", "> x", {"a": 1}, ["x"], [{}], 10**30, "a" * 400, "\0",
    "user ==", "retain", "oppo", "*", "nobody knows",
)  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    below = [place for key, one in inner for place in _places(one, (*path, key))]
    return [path, *below] if path else below


def _break(document: dict[str, Any], dice: random.Random) -> None:
    """Put something strange somewhere, as a value or under a key that nobody knows."""
    *way, last = dice.choice(_places(document))
    part: Any = document
    for key in way:
        part = part[key]
    if isinstance(part, dict) and dice.random() < 0.3:
        last = dice.choice(["extra", "name", "then", "limits"])
    part[last] = copy.deepcopy(dice.choice(STRANGE))


@given(st.integers(0, 2**32), st.sampled_from(sorted(DOCUMENTS)))
def test_a_broken_document_is_told_the_same_at_apply_and_offline(seed: int, kind: str) -> None:
    dice = random.Random(seed)
    documents = {
        name: yaml.safe_load(yaml.safe_dump(document)) for name, document in DOCUMENTS.items()
    }
    for _ in range(dice.randint(1, 3)):
        _break(documents[kind], dice)
    maps = {
        name: a_policy_map(name, yaml.safe_dump(document)) for name, document in documents.items()
    }
    sink = PolicySink(KeptEvents())
    sink.replace([one for name, one in maps.items() if name != kind])
    assert _told(lambda: sink.check(maps[kind])) == _told(
        lambda: build_from_files([(name, yaml.safe_dump(dict(one))) for name, one in maps.items()])
    )


def _told(build: Any) -> list[str]:
    try:
        build()
    except SpecError as exc:
        return sorted(map(str, exc.problems))
    return []
