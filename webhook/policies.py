"""Policy documents from their ConfigMaps: the policy in force, and whether a new one may be.

A ConfigMap whose label names a kind that we do not know is a problem, and otherwise left alone: it
may be of a newer Cellgate.
"""

import logging
from collections.abc import Iterable, Sequence

from kube.client import Object
from policy.documents import DATA_KEY, LABEL, parse_label
from policy.errors import Problem, SpecError
from policy.store import Policy, PolicyStore, PolicyText, build_policy
from service.bodies import read_body
from webhook.metrics import WebhookMetrics
from webhook.wire import ConfigMap

logger = logging.getLogger(__name__)


class PolicySink:
    """Keeps the policy in force up to date with the ConfigMaps that exist."""

    def __init__(self, metrics: WebhookMetrics) -> None:
        self._store = PolicyStore()
        self._metrics = metrics
        self._config_maps: dict[str, ConfigMap] = {}

    @property
    def policy(self) -> Policy:
        """What decisions are made by."""
        return self._store.policy

    def replace(self, objects: Sequence[Object]) -> None:
        """Take a whole list: what is not in it is gone."""
        self._config_maps = {obj["metadata"]["name"]: read_body(ConfigMap, obj) for obj in objects}
        self._update()

    def upsert(self, obj: Object) -> None:
        """Take note of a document that appeared or changed."""
        self._config_maps[obj["metadata"]["name"]] = read_body(ConfigMap, obj)
        self._update()

    def remove(self, obj: Object) -> None:
        """Take note of a document that is gone."""
        self._config_maps.pop(obj["metadata"]["name"], None)
        self._update()

    def check(self, config_map: ConfigMap) -> None:
        """Raise SpecError with all that would be wrong if this document were part of the policy."""
        build_policy([*self._texts_without(config_map.metadata.name), _read_text(config_map)])

    def check_without(self, config_map: ConfigMap) -> None:
        """Raise SpecError with all that would be wrong if this document were gone."""
        build_policy(self._texts_without(config_map.metadata.name))

    def _texts_without(self, name: str) -> list[PolicyText]:
        others = [other for known, other in self._config_maps.items() if known != name]
        texts, _ = _read_texts(others)
        return texts

    def _update(self) -> None:
        texts, problems = _read_texts(self._config_maps.values())
        before = self._store.policy.version
        policy = self._store.update(texts)
        problems += self._store.problems
        self._metrics.policy_problems.set(len(problems))
        if problems:
            told = [str(problem) for problem in problems]
            logger.warning("policy has problems", extra={"problems": told})
        if policy.version != before:
            logger.info("policy changed", extra={"policy_version": policy.version})


def _read_texts(config_maps: Iterable[ConfigMap]) -> tuple[list[PolicyText], list[Problem]]:
    texts: list[PolicyText] = []
    problems: list[Problem] = []
    for config_map in config_maps:
        try:
            texts.append(_read_text(config_map))
        except SpecError as exc:
            problems += exc.problems
    return texts, problems


def _read_text(config_map: ConfigMap) -> PolicyText:
    source = f"ConfigMap {config_map.metadata.name}"
    kind = parse_label(config_map.label(LABEL) or "")
    text = (config_map.data or {}).get(DATA_KEY)
    if text is None:
        raise SpecError([Problem(source, f"data has no {DATA_KEY}; the document belongs there")])
    return PolicyText(kind=kind, source=source, text=text)
