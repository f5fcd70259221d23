"""How long it takes to understand a pod: this happens for every filter call and watch event."""

from functools import partial
from typing import Any

from bench.report import Result, best_percentiles
from kube import marks
from kube.read.pods import read_pod

_HIVED = """
virtualCluster: lab
priority: 10
leafCellType: A100
leafCellNumber: 8
affinityGroup:
  name: lab/bert
  members: [{podNumber: 4, leafCellNumber: 8}]
"""


def measure(*, is_quick: bool) -> list[Result]:
    """Time the translation of typical pods."""
    works = {name: partial(read_pod, pod) for name, pod in _pods().items()}
    best = best_percentiles(works, percents=(50,), repeat=400 if is_quick else 5000)
    return [
        Result(case={"pod": name}, metric="read_p50_us", value=values[50])
        for name, values in best.items()
    ]


def _pods() -> dict[str, dict[str, Any]]:
    return {
        "unmanaged": _pod({}, {}, limits={"cpu": "1"}),
        "single": _pod({}, {}),
        "gang": _pod({marks.GANG_LABEL: "bert", marks.GANG_SIZE_LABEL: "4"}, {}),
        "hived": _pod({}, {marks.HIVED_SPEC_ANNOTATION: _HIVED}),
    }


def _pod(
    labels: dict[str, str], annotations: dict[str, str], *, limits: dict[str, str] | None = None
) -> dict[str, Any]:
    resources = {"limits": limits or {"nvidia.com/gpu": "8"}}
    return {
        "metadata": {
            "name": "bert-0",
            "namespace": "lab",
            "uid": "6e1f",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"containers": [{"name": "main", "resources": resources}]},
    }
