"""Policy documents in their ConfigMaps: from Kubernetes' JSON to the policy in force.

Both services follow the ConfigMaps with a `PolicySink`; the webhook also asks it whether a change
would leave a policy that makes sense. A ConfigMap whose label names a kind that we do not know is a
problem, and otherwise left alone: it may be of a newer Cellgate.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kube.read.objects import mapping, marks_of
from policy.documents.documents import DATA_KEY, LABEL, parse_label
from policy.errors import Problem, SpecError
from policy.store import Policy, PolicyStore, PolicyText, build_policy
from policy.wording import describe

logger = logging.getLogger(__name__)

Object = Mapping[str, Any]


def is_policy(config_map: Object) -> bool:
    """Tell whether a ConfigMap is labelled as a policy document."""
    return LABEL in marks_of(config_map, "labels")


def read_policy_text(config_map: Object) -> PolicyText:
    """Take the document out of a ConfigMap. Raises SpecError if it is not there."""
    source = source_of(config_map)
    label = marks_of(config_map, "labels").get(LABEL)
    kind = parse_label(label if isinstance(label, str) else "")
    data = mapping(config_map.get("data"))
    if DATA_KEY not in data:
        raise SpecError([Problem(source, f"data has no {DATA_KEY}; the document belongs there")])
    text = data[DATA_KEY]
    if not isinstance(text, str):
        message = f"must be text, not {describe(text)}"
        raise SpecError([Problem(f"{source}: data[{DATA_KEY}]", message)])
    return PolicyText(kind=kind, source=source, text=text)


def source_of(config_map: Object) -> str:
    """Name a ConfigMap to people."""
    return f"ConfigMap {_name(config_map)}"


class PolicySink:
    """Keeps the policy in force up to date with the ConfigMaps that exist."""

    def __init__(self, on_change: Callable[[Policy, Sequence[Problem]], None]) -> None:
        """`on_change` hears of the policy in force, and of every problem, after each change."""
        self._store = PolicyStore()
        self._on_change = on_change
        self._config_maps: dict[str, Object] = {}

    @property
    def policy(self) -> Policy:
        """What decisions are made by."""
        return self._store.policy

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._config_maps = {_name(obj): obj for obj in objects}
        self._update()

    def upsert(self, obj: Object) -> None:
        """Take note of a document that appeared or changed."""
        self._config_maps[_name(obj)] = obj
        self._update()

    def remove(self, obj: Object) -> None:
        """Take note of a document that is gone."""
        self._config_maps.pop(_name(obj), None)
        self._update()

    def check(self, config_map: Object) -> Policy:
        """Return the policy with this document; SpecError with all that would be wrong with it."""
        return build_policy([*self._texts_without(_name(config_map)), read_policy_text(config_map)])

    def check_without(self, config_map: Object) -> Policy:
        """Return the policy without this document; SpecError with all that would be wrong."""
        return build_policy(self._texts_without(_name(config_map)))

    def _texts_without(self, name: str) -> list[PolicyText]:
        others = [other for known, other in self._config_maps.items() if known != name]
        return _read_texts(others)[0]

    def _update(self) -> None:
        texts, problems = _read_texts(self._config_maps.values())
        before = self._store.policy.version
        policy = self._store.update(texts)
        problems += self._store.problems
        if problems:
            told = [str(problem) for problem in problems]
            logger.warning("policy has problems", extra={"problems": told})
        if policy.version != before:
            logger.info("policy changed", extra={"policy_version": policy.version})
        self._on_change(policy, problems)


def _read_texts(config_maps: Iterable[Object]) -> tuple[list[PolicyText], list[Problem]]:
    texts: list[PolicyText] = []
    problems: list[Problem] = []
    for config_map in config_maps:
        try:
            texts.append(read_policy_text(config_map))
        except SpecError as exc:
            problems += exc.problems
    return texts, problems


def _name(config_map: Object) -> str:
    return str(mapping(config_map.get("metadata")).get("name", ""))
