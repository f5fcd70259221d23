"""Scenarios of HiveD's behaviour, played on the engine: our own, and the shared ones if present."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.cells.player import Player, Pod
from tests.support.cells.scenario_steps import play

OWN = Path(__file__).parent / "scenarios"
SHARED = Path(__file__).parents[5] / "shared" / "reference" / "hived-vectors"
_RENAMED = {
    "delete_allocated_pod": "delete",
    "delete_unallocated_pod": "delete",
    "construct_scheduler": "start",
    "restart_with_config": "restart",
}
_SHORT = {"restartWithConfig": "restart", "nodeBad": "node_bad", "nodeHealthy": "node_healthy"}


@dataclass
class Scenario:
    """One independent history."""

    name: str
    config: dict[str, Any]
    configs: dict[str, Any]
    pods: dict[str, Pod]
    steps: list[dict[str, Any]] = field(default_factory=list)
    jobs: dict[str, list[str]] = field(default_factory=dict)

    def add(self, step: dict[str, Any]) -> None:
        """Take in a step of any shape."""
        if "submit" in step or "retry" in step:
            self.steps.append({**step, "op": "submit", "pods": self._submitted(step)})
            return
        for word, op in _SHORT.items():
            if word in step:
                key = "config" if op == "restart" else "node"
                self.steps.append({**step, "op": op, key: step[word]})
                return
        op = _RENAMED.get(step["op"], step["op"])
        if "spec" in step:
            self.pods[step["pod"]] = Pod(step["pod"], step["spec"])
        if op not in ("define", "note"):
            self.steps.append({**step, "op": "check" if op.startswith("assert_") else op})

    def _submitted(self, step: dict[str, Any]) -> list[str]:
        who = step.get("submit", step.get("retry"))
        listed = who if isinstance(who, list) else step.get("pods")
        if listed is None:
            assert isinstance(who, str)
            return self.jobs[who]
        names = []
        for pod in listed:
            if isinstance(pod, dict):
                self.pods[pod["pod"]] = scenario_pod(pod["pod"], pod)
            names.append(pod["pod"] if isinstance(pod, dict) else pod)
        if isinstance(who, str):
            self.jobs[who] = names
        return names


def scenario_pod(name: str, pod: dict[str, Any]) -> Pod:
    """A pod as the file tells it."""
    return Pod(
        name, pod.get("schedulingSpec"), pod.get("namespace", "default"), pod.get("nodeName")
    )


def scenarios() -> Iterator[Scenario]:
    """All scenarios that have steps for the engine."""
    for path in (*sorted(OWN.glob("*.json")), *sorted(SHARED.glob("*.json"))):
        data = json.loads(path.read_text())
        for item in [*data.get("suites", []), *data.get("scenarios", []), *data.get("defects", [])]:
            if item.get("skip") or "variants" in item:
                continue
            configs = {**data.get("configs", {}), **item.get("configs", {})}
            config = item.get("playConfig", item.get("config"))
            pods = {**data.get("pods", {}), **item.get("pods", {})}
            scenario = Scenario(
                f"{path.stem}/{item['id']}",
                configs[config] if isinstance(config, str) else config,
                configs,
                {name: scenario_pod(name, pod) for name, pod in pods.items()},
            )
            own = [*item.get("steps", []), *item.get("extraSteps", [])]
            for step in item.get("play", own):
                scenario.add(step)
            scenario.add({"op": "check", "check": item.get("check", [])})
            yield scenario


SCENARIOS = [
    scenario
    for scenario in scenarios()
    # A configuration that must be refused is no matter of the engine.
    if not any((s.get("expect") or {}).get("kind") == "fatal_config_error" for s in scenario.steps)
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_scenario_goes_as_it_must(scenario: Scenario) -> None:
    player = Player(scenario.config, scenario.configs, scenario.pods)
    for number, step in enumerate(scenario.steps):
        try:
            play(player, step)
        except AssertionError as exc:
            what = step.get("pod") or step.get("pods") or step.get("node") or ""
            raise AssertionError(f"step {number} {step['op']} {what}: {exc}") from exc
