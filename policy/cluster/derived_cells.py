"""Builds chains of cells from live nodes, by their labels.

A node's path is the values of the level labels, then its own name: `zone-a/rack-1/node-7`, with its
devices below, `zone-a/rack-1/node-7/0`. Addresses depend on nothing else, so they stay the same
when other nodes join or leave. Nodes of a chain may differ in their number of devices.

A chain is a leaf type within one entry of `nodeTopology`. An entry with a name is a *domain*, and
its chains are named `A100@east`. Without names, the chains of the first entry are named like the
leaf type, those of entry 1 `A100#1`, so that entries added below rename nothing.

Cells are cached: when a node joins or leaves, only the cells around it are built again, and all
others are the same objects as before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from policy.cluster.document import MAX_LEVELS, LiveNode
from policy.cluster.node_tree import Branch
from policy.cluster.safety import Composition
from policy.documents.models import Strict
from policy.documents.names import DNS_LABEL, check_line, matching
from policy.errors import Problem
from policy.submission import LeafType, NodeName
from policy.topology import CellTypeName, Chain, ChainName, DomainName, Level
from policy.wording import count_of, describe, join_path, listing, quote

UNLABELLED: Final = "-"
"""The place of all nodes that lack the label of a level. No label has this value."""
UNKNOWN_TYPE: Final = LeafType("unknown")
MAX_DEVICES: Final = 1024
_SHOWN_NODES: Final = 5
_MAX_KEY_CHARS: Final = 317
"""253 of a prefix, the slash, and 63 of a name."""

_ChainKey = tuple[int, LeafType]
_Note = tuple[str, str]
"""A path in the document, and what is wrong with a node."""


def _check_key(value: object) -> str:
    """Pass the name of a label, a resource or a leaf type."""
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {describe(value)}")
    if not value:
        raise ValueError("must not be empty")
    return check_line(value, most=_MAX_KEY_CHARS)


LabelKey = Annotated[str, BeforeValidator(_check_key)]
_MAX_DOMAIN_CHARS: Final = 63
DomainField = Annotated[
    str,
    BeforeValidator(
        matching(DNS_LABEL, "a name of lower-case letters, digits and -", most=_MAX_DOMAIN_CHARS)
    ),
]


class NodeTopologyEntry(Strict):
    """Which nodes are selected, and how their labels make cells."""

    name: DomainField = Field(
        default="",
        description="Makes the selected nodes a domain; promises name it as their `domain`. A node "
        "joins and leaves it by its labels.",
    )
    node_selector: dict[str, str] = Field(
        default={}, description="Labels that a node must have; without any, all nodes are selected."
    )
    levels: list[LabelKey] = Field(
        min_length=1,
        max_length=MAX_LEVELS - 1,
        description="Label keys, coarsest to finest; the last is `kubernetes.io/hostname`.",
    )
    leaf_resource: LabelKey = Field(description="The resource whose units are the leaf cells.")
    leaf_type_label: LabelKey = Field(description="The label whose value is the leaf type.")

    @property
    def promised_levels(self) -> tuple[str, ...]:
        """Its levels as promises name them, from the leaf resource upwards."""
        return (self.leaf_resource, *reversed(self.levels))

    def selects(self, node: LiveNode) -> bool:
        """Whether the node has all labels of the selector."""
        return all(node.labels.get(key) == value for key, value in self.node_selector.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedCells:
    """The chains, and which entry each comes from."""

    rules: Sequence[NodeTopologyEntry]
    chains: Mapping[ChainName, Chain]
    compositions: Mapping[ChainName, Composition]
    """What the cells of each chain are made of, without their names."""
    rule_of: Mapping[ChainName, int]
    warnings: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The places of a node, and what is wrong with it."""

    places: Mapping[_ChainKey, tuple[tuple[str, ...], int]]
    """Its path, label values and then its name, and its number of devices."""
    notes: tuple[_Note, ...]


class CellBuilder:
    """Builds the chains of the live nodes; their order makes no difference."""

    def __init__(self, rules: Sequence[NodeTopologyEntry]) -> None:
        self._rules = rules
        self._seen: dict[NodeName, _Seen] = {}
        self._roots: dict[_ChainKey, Branch] = {}
        self._chains: dict[_ChainKey, Chain] = {}
        self._noted: dict[_Note, dict[NodeName, None]] = {}

    def observe(self, node: LiveNode) -> None:
        """Take note of a node that joined or changed."""
        seen = _look(node, self._rules)
        if self._seen.get(node.name) == seen:
            return
        self.forget(node.name)
        self._seen[node.name] = seen
        for key, (path, leaf_count) in seen.places.items():
            levels = len(self._rules[key[0]].levels)
            self._roots.setdefault(key, Branch("", level=levels + 2)).put(path, leaf_count)
            self._chains.pop(key, None)
        for note in seen.notes:
            self._noted.setdefault(note, {})[node.name] = None

    def forget(self, name: NodeName) -> None:
        """Take note of a node that left."""
        seen = self._seen.pop(name, None)
        if seen is None:
            return
        for key, (path, _) in seen.places.items():
            self._roots[key].take(path)
            self._chains.pop(key, None)
            if not self._roots[key].is_used:
                del self._roots[key]
        for note in seen.notes:
            del self._noted[note][name]
            if not self._noted[note]:
                del self._noted[note]

    def build(self) -> DerivedCells:
        """Build what has changed since the last time."""
        for key in sorted(self._roots.keys() - self._chains.keys()):
            self._chains[key] = _chain(self._rules[key[0]], key, self._roots[key])
        chains = {key: self._chains[key] for key in sorted(self._chains)}
        return DerivedCells(
            rules=self._rules,
            chains={chain.name: chain for chain in chains.values()},
            compositions={
                chain.name: self._roots[key].composition() for key, chain in chains.items()
            },
            rule_of={chain.name: key[0] for key, chain in chains.items()},
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[Problem]:
        for (path, what), nodes in sorted(self._noted.items()):
            names = sorted(nodes)
            shown = [quote(name) for name in names[:_SHOWN_NODES]]
            more = [f"{len(names) - len(shown)} more"] if len(names) > len(shown) else []
            nodes_text = f"{count_of(len(names), 'node')} {what}: {listing([*shown, *more])}"
            yield Problem(path, nodes_text)


def _look(node: LiveNode, rules: Sequence[NodeTopologyEntry]) -> _Seen:
    places: dict[_ChainKey, tuple[tuple[str, ...], int]] = {}
    notes: list[_Note] = []
    for index, rule in rules_for(node, rules):
        found = _place(node, rule=rule, index=index, notes=notes)
        if found is not None:
            leaf_type = _leaf_type(node, rule=rule, index=index, notes=notes)
            places[index, leaf_type] = found
    return _Seen(places=places, notes=tuple(notes))


def rules_for(
    node: LiveNode, rules: Sequence[NodeTopologyEntry]
) -> Iterator[tuple[int, NodeTopologyEntry]]:
    """Yield the first rule for each leaf resource of the node: no device counts twice."""
    resources: dict[str, None] = {}
    for index, rule in enumerate(rules):
        if rule.leaf_resource not in resources and rule.selects(node):
            resources[rule.leaf_resource] = None
            yield index, rule


def _place(
    node: LiveNode, *, rule: NodeTopologyEntry, index: int, notes: list[_Note]
) -> tuple[tuple[str, ...], int] | None:
    """Find the node's place; None if it has no devices."""
    count = node.leaf_counts.get(rule.leaf_resource, 0)
    resource = join_path(("nodeTopology", index, "leafResource"))
    if count <= 0:
        if rule.leaf_type_label in node.labels:
            what = f"of a leaf type, but without any {rule.leaf_resource}, left out"
            notes.append((resource, what))
        return None
    if count > MAX_DEVICES:
        notes.append((resource, f"with more than {MAX_DEVICES} {rule.leaf_resource}, left out"))
        return None
    values = [
        _label(node, key, path=join_path(("nodeTopology", index, "levels", place)), notes=notes)
        for place, key in enumerate(rule.levels[:-1])
    ]
    return (*values, node.name), count


def _label(node: LiveNode, key: str, *, path: str, notes: list[_Note]) -> str:
    value = node.labels.get(key)
    if not value:
        notes.append((path, f"without the label {key}, placed in {quote(UNLABELLED)}"))
    return value or UNLABELLED


def _leaf_type(
    node: LiveNode, *, rule: NodeTopologyEntry, index: int, notes: list[_Note]
) -> LeafType:
    value = node.labels.get(rule.leaf_type_label)
    if not value:
        path = join_path(("nodeTopology", index, "leafTypeLabel"))
        what = f"without the label {rule.leaf_type_label}, of leaf type {quote(UNKNOWN_TYPE)}"
        notes.append((path, what))
    return LeafType(value) if value else UNKNOWN_TYPE


def _chain(rule: NodeTopologyEntry, key: _ChainKey, root: Branch) -> Chain:
    index, leaf_type = key
    return Chain(
        name=ChainName(f"{leaf_type}{_suffix(rule, index)}"),
        leaf_type=leaf_type,
        levels=_levels(rule, leaf_type, root),
        cells=root.children(),
        domain=DomainName(rule.name),
    )


def _suffix(rule: NodeTopologyEntry, index: int) -> str:
    return f"@{rule.name}" if rule.name else f"#{index}" if index else ""


def _levels(rule: NodeTopologyEntry, leaf_type: LeafType, root: Branch) -> tuple[Level, ...]:
    """Describe each level by its largest cell."""
    types = [CellTypeName(leaf_type), *(CellTypeName(key) for key in reversed(rule.levels))]
    return tuple(
        Level(
            level=place + 1,
            cell_type=cell_type,
            child_count=root.most(place + 1).children,
            leaf_count=root.most(place + 1).leaves,
            is_node=place == 1,
        )
        for place, cell_type in enumerate(types)
    )
