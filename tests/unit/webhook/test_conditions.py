"""Which new pods the API server asks a second time about: each call makes a creation slower."""

from pathlib import Path
from typing import Any

import cel
import pytest
import yaml

from simulation.patch import json_patch
from tests.builders import a_pod
from tests.unit.webhook.reviews import Webhook, a_review

WEBHOOKS = Path(__file__).parents[3] / "manifests" / "base" / "webhooks.yaml"
POLICIES = {
    "rules": """
apiVersion: cellgate.io/v1
kind: Rules
rules: [{priority: prod, then: oppo, note: experiments}]
""",
    "quotas": """
apiVersion: cellgate.io/v1
kind: Quotas
groups: [{name: vision, limits: {leafCells: 4}, over: queue, users: [{name: alice}]}]
""",
}


def _is_asked_again(pod: dict[str, Any]) -> bool:
    _, validating = yaml.safe_load_all(WEBHOOKS.read_text())
    hook = next(one for one in validating["webhooks"] if one["name"] == "pods.cellgate.io")
    request = {"operation": "CREATE", "userInfo": {"username": "alice"}}
    known = {"request": request, "object": pod, "oldObject": None}
    conditions = [one["expression"] for one in hook["matchConditions"]]
    return all(cel.compile(expression).execute(known) is True for expression in conditions)


@pytest.mark.parametrize(
    ("class_name", "gpus", "asked"),
    [("test", 1, False), ("prod", 1, True), ("test", 8, True)],
    ids=["as it was asked for", "lowered", "queued for quota"],
)
async def test_only_pods_that_there_is_something_to_say_about_are_asked_about_again(
    class_name: str, gpus: int, asked: bool
) -> None:
    webhook = Webhook(POLICIES, gates_all=True)
    pod = a_pod().with_gpus(gpus).of_class(class_name)
    answer = await webhook.pods.mutate(a_review(pod))
    stored = json_patch(dict(pod), list(answer.patch))
    assert stored["spec"]["schedulingGates"] == [{"name": "cellgate.io/queued"}]
    assert _is_asked_again(stored) is asked
    stored["spec"]["priorityClassName"] = "another"
    assert _is_asked_again(stored)
