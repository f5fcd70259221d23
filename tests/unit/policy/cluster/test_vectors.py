"""Configurations of the shared scenarios: those that must be refused name what is wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.policy.cluster_texts import problems_of, topology_of

FOLDER = Path(__file__).parents[5] / "shared" / "reference" / "hived-vectors"
REFUSED = "fatal_config_error"


def _scenarios() -> Iterator[tuple[str, dict[str, Any], list[str] | None]]:
    """Yield name, configuration, and what an error must name (None if there must be none)."""
    for path in sorted(FOLDER.glob("*.json")):
        data = json.loads(path.read_text())
        shared = data.get("configs", {})
        plays = [*data.get("suites", []), *data.get("scenarios", []), *data.get("defects", [])]
        for play in plays:
            for variant, own in play.get("variants", {"": {}}).items():
                whole = {**play, **own}
                config = whole.get("playConfig", whole.get("config"))
                config = shared.get(config) if isinstance(config, str) else config
                if config is not None:
                    name = f"{path.stem}/{play['id']}/{variant}".rstrip("/")
                    yield name, config, _names(whole)


def _names(play: dict[str, Any]) -> list[str] | None:
    steps = play.get("play", play.get("steps", []))
    expected = [step.get("expect") or {} for step in steps[:1]]
    return next((e.get("names", []) for e in expected if e.get("kind") == REFUSED), None)


SCENARIOS = list(_scenarios())


@pytest.mark.skipif(not SCENARIOS, reason="the shared scenarios are not here")
@pytest.mark.parametrize(
    ("config", "names"),
    [pytest.param(config, names, id=name) for name, config, names in SCENARIOS],
)
def test_a_configuration_is_read_or_refused_by_name(
    config: dict[str, Any], names: list[str] | None
) -> None:
    text = json.dumps(config)
    if names is None:
        assert topology_of(text).chains
    else:
        problems = "\n".join(problems_of(text))
        assert [name for name in names if name not in problems] == []
