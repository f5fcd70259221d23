"""A policy's Queues document as a tree: changed by values, and written.

A level says by `strategy` where its worth is from. So after a change the strategy is named anew:
the one whose worth it is, or `formula` without a formula, which means the sum of worth · factor.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import yaml

from policy.documents.models import API_VERSION
from policy.documents.queues_document import QueuesDocument
from policy.documents.yaml_tree import Plain
from policy.errors import SpecError
from policy.parser import DocumentKind, parse_document
from policy.policy import Policy
from policy.queues.durations import parse_duration
from policy.queues.factors import FactorName
from policy.queues.queues import DEFAULT_QUEUES, PRESETS, Queues, Strategy
from timemachine.tuning.parameters import Parameter, write_duration

Tree = dict[str, Plain]
Values = Mapping[Parameter, float]

_NAMED_LEVELS: Final = ("userLevels", "groupLevels")
_LINE_CHARS: Final = 100
_PLAIN: Final = re.compile(r"[A-Za-z].*|(?:[0-9]{1,9}[wdhms])+")
"""Texts without quotes: words and durations."""


def document_of(policy: Policy) -> Tree:
    """Return the Queues document of a policy; the default one if it has none."""
    content = json.loads(policy.content) if policy.content else {}
    found = content.get(DocumentKind.QUEUES)
    tree: dict[str, Any] = {"apiVersion": API_VERSION, "kind": DocumentKind.QUEUES.value}
    if found is None:
        level = DEFAULT_QUEUES.levels[0]
        tree["levels"] = [{"name": level.name, "strategy": level.strategy.value}]
        return tree
    tree |= found
    for key in _NAMED_LEVELS:
        if key in tree:  # kept as pairs, because their order has a meaning
            tree[key] = dict(tree[key])
    return tree


def level_names(tree: Tree) -> list[str]:
    """Return the names of the levels, highest first."""
    return [str(level["name"]) for level in _levels(tree)]


def changed(tree: Tree, values: Values) -> Tree:
    """Return the document with other values; all else stays as it is."""
    new: Any = _copied(tree)
    for parameter, value in values.items():
        place: Any = new
        for key in parameter.keys[:-1]:
            place = place[key] if isinstance(key, int) else place.setdefault(key, {})
        place[parameter.keys[-1]] = parameter.write(value)
    for place in dict.fromkeys(one.level for one in values if one.factor):
        _name_strategy(new["levels"][place])
    return dict(new)


def _copied(value: Plain) -> Plain:
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    return [_copied(one) for one in value] if isinstance(value, list) else value


def _name_strategy(level: dict[str, Any]) -> None:
    worth = _worth_of(level)
    level.pop("worth")
    if not level.get("formula"):
        own = Strategy(level["strategy"])
        presets = [name for name in (own, *Strategy) if PRESETS[name] == worth]
        named = next((name for name in presets if name is not Strategy.FORMULA), None)
        level["strategy"] = (named or Strategy.FORMULA).value
        if named is not None:
            return
    level["worth"] = {
        str(name): write_duration(worth[name]) for name in FactorName if worth.get(name)
    }


def _worth_of(level: Mapping[str, Any]) -> dict[FactorName, float]:
    """Return the worth that counts, in seconds, without factors that are worth nothing."""
    given = {FactorName(name): parse_duration(text) for name, text in level["worth"].items()}
    merged = {**PRESETS[Strategy(level["strategy"])], **given}
    return {name: worth for name, worth in merged.items() if worth}


def current_value(tree: Tree, parameter: Parameter) -> float | None:
    """Return the worth that counts in the document; None for a field that is no worth."""
    if parameter.factor is None or parameter.level is None:
        return None
    level = _levels(tree)[parameter.level]
    return _worth_of({"worth": {}, **level}).get(parameter.factor, 0.0)


def read(tree: Tree) -> Queues | None:
    """Return what the document says; None if it would be refused."""
    try:
        document = parse_document(write(tree), kind=DocumentKind.QUEUES)
    except SpecError:
        return None
    assert isinstance(document, QueuesDocument)
    return document.build()


def write(tree: Tree) -> str:
    """Write the document as YAML."""
    return yaml.dump(tree, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=_LINE_CHARS)


@cache
def _dumper() -> type[yaml.SafeDumper]:
    class Dumper(yaml.SafeDumper):
        """Quotes every text that could be read as something else."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None if _PLAIN.fullmatch(value) and value.isprintable() else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper


def _levels(tree: Tree) -> Sequence[dict[str, Any]]:
    levels: Any = tree["levels"]
    return list(levels)
