"""Cells of the nodes that were seen lately, to judge a changed document and new workloads by.

Nodes are counted by their devices and labels; their names do not matter, and no cell is built. What
is not known counts in favour of the admin, because only what is certainly too much is refused:

- A node without the label of a level is a cell of that level by itself: labels may come later.
- A node without a leaf type counts for every leaf type that is promised.
- Nodes that the document expects (`expectedNodes`) are such nodes, of their leaf type.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policy.capacity import Capacity, ChainCapacity, Share
from policy.cluster.derived_cells import MAX_DEVICES, NodeTopologyEntry, rules_for
from policy.cluster.derived_promises import Wish
from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.safety import Composition, Shortage, plant
from policy.errors import Problem
from policy.pod_resources import CPU, MEMORY, Amounts
from policy.submission import LeafType, NodeName, VcName
from policy.topology import CellKind, DomainName
from policy.wording import count_of, quote

SEEN_DAYS: Final = 7
"""A node that is gone counts for so many days."""

ChainKey = tuple[int, LeafType]
"""The entry of `nodeTopology`, and the leaf type."""
_NODE: Final = 1
"""The place of the node among the levels of a chain."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes of one place: label values by level, None where a label is missing."""

    path: tuple[str | None, ...]
    devices: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedNodes:
    """Nodes that will be added, of one domain or, if that is empty, of any entry."""

    leaf_type: LeafType
    leaf_cells: int
    number: int
    domain: DomainName


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenChain:
    """The cells of one leaf type in one entry of `nodeTopology`."""

    levels: tuple[str, ...]
    """As promises name them, from the leaf resource upwards."""
    domain: DomainName
    composition: Composition
    largest: tuple[int, ...]
    """Leaf cells of the largest cell of each level, in the same order."""
    leaf_count: int


def label_keys(rules: Sequence[NodeTopologyEntry]) -> tuple[str, ...]:
    """Return the labels on which the cells of nodes depend, sorted."""
    keys: dict[str, None] = {}
    for rule in rules:
        keys |= dict.fromkeys((*rule.node_selector, *rule.levels[:-1], rule.leaf_type_label))
    return tuple(sorted(keys))


def find_chains(
    rules: Sequence[NodeTopologyEntry],
    counts: Sequence[NodeCount],
    *,
    expected: Sequence[ExpectedNodes],
    leaf_types: Sequence[LeafType],
) -> dict[ChainKey, SeenChain]:
    """Return the chains of the nodes that were seen, and of those that are expected.

    `leaf_types` are those that are promised. Empty if no node with devices was seen: then nothing
    is known.
    """
    places: defaultdict[ChainKey, list[_Nodes]] = defaultdict(list)
    for one in counts:
        for key, nodes in _places(one, rules, leaf_types):
            places[key].append(nodes)
    if not places:
        return {}
    for one_kind in expected:
        for index, rule in enumerate(rules):
            if one_kind.domain in ("", rule.name):
                path = (None,) * (len(rule.levels) - 1)
                nodes = _Nodes(path, one_kind.leaf_cells, one_kind.number)
                places[index, one_kind.leaf_type].append(nodes)
    return {key: _chain(rules[key[0]], places[key]) for key in sorted(places)}


def _places(
    one: NodeCount, rules: Sequence[NodeTopologyEntry], leaf_types: Sequence[LeafType]
) -> Iterator[tuple[ChainKey, _Nodes]]:
    node = LiveNode(name=NodeName(""), labels=one.labels, leaf_counts=one.leaf_counts)
    for index, rule in rules_for(node, rules):
        devices = one.leaf_counts.get(rule.leaf_resource, 0)
        if not 0 < devices <= MAX_DEVICES:
            continue
        path = tuple(one.labels.get(key) or None for key in rule.levels[:-1])
        own = one.labels.get(rule.leaf_type_label)
        for leaf_type in (LeafType(own),) if own else leaf_types:
            yield (index, leaf_type), _Nodes(path, devices, one.number)


def _chain(rule: NodeTopologyEntry, nodes: Sequence[_Nodes]) -> SeenChain:
    tops = tuple(sorted(_compose(nodes).items()))
    largest = [1] * (len(rule.levels) + 2)
    leaf_count = _measure(tops, level=len(largest) - 1, largest=largest)
    return SeenChain(
        levels=rule.promised_levels,
        domain=DomainName(rule.name),
        composition=tops,
        largest=tuple(largest[:-1]),
        leaf_count=leaf_count,
    )


def _compose(nodes: Sequence[_Nodes]) -> Counter[Composition]:
    """Return what the cells of these nodes' first level are made of, with their numbers."""
    made: Counter[Composition] = Counter()
    together: defaultdict[str, list[_Nodes]] = defaultdict(list)
    for one in nodes:
        if not one.path:
            made[(((), one.devices),)] += one.number
        elif one.path[0] is None:
            alone = _compose([_Nodes(one.path[1:], one.devices, 1)])
            made[tuple(sorted(alone.items()))] += one.number
        else:
            together[one.path[0]].append(_Nodes(one.path[1:], one.devices, one.number))
    for place in together.values():
        made[tuple(sorted(_compose(place).items()))] += 1
    return made


def _measure(cell: Composition, *, level: int, largest: list[int]) -> int:
    """Return the leaf cells of a cell, and note the largest of each level below."""
    if not level:
        return 1
    total = 0
    for part, times in cell:
        total += _measure(part, level=level - 1, largest=largest) * times
    largest[level] = max(largest[level], total)
    return total


def _chains_of(wish: Wish, chains: Mapping[ChainKey, SeenChain]) -> Iterator[ChainKey]:
    """Yield the chains that have the leaf type, level and domain of a promise."""
    for key, chain in chains.items():
        is_of_domain = wish.domain in ("", chain.domain)
        if key[1] == wish.leaf_type and wish.level in chain.levels and is_of_domain:
            yield key


def find_capacity(wishes: Sequence[Wish], chains: Mapping[ChainKey, SeenChain]) -> Capacity:
    """Return how large gangs can be, in all and within the promises of each VC."""
    of_vc: dict[ChainKey, dict[VcName, Share]] = {key: {} for key in chains}
    for wish in wishes:
        for key in _chains_of(wish, chains) if wish.count else ():
            chain, level = chains[key], chains[key].levels.index(wish.level)
            count = min(wish.count * chain.largest[level], chain.leaf_count)
            share = Share(count, chain.largest[min(level, _NODE)])
            of_vc[key][wish.vc] = of_vc[key].get(wish.vc, Share(0, 0)) + share
    return Capacity(
        chains=tuple(
            ChainCapacity(
                leaf_type=key[1],
                all_cells=Share(chain.leaf_count, chain.largest[_NODE]),
                of_vc=of_vc[key],
            )
            for key, chain in chains.items()
        )
    )


def find_largest(counts: Sequence[NodeCount]) -> Amounts:
    """Return what one node has at most of CPU and memory, as far as that is known of all nodes."""
    amounts = {CPU: [one.cpu for one in counts], MEMORY: [one.memory for one in counts]}
    known = {
        resource: [amount for amount in found if amount is not None]
        for resource, found in amounts.items()
    }
    return tuple(
        (resource, max(found))
        for resource, found in known.items()
        if found and len(found) == len(counts)
    )


def check_raised(
    wishes: Sequence[Wish], *, before: Sequence[Wish], chains: Mapping[ChainKey, SeenChain]
) -> Iterator[Problem]:
    """Yield the promises that a change raises beyond what the nodes can back.

    A level whose promises to all VCs together do not grow is not judged: so a document can be
    edited during an outage, and cells can be moved from one VC to another.
    """
    now, then = _totals(wishes), _totals(before)
    raised = {kind for kind, count in now.items() if count > then[kind]}
    for key, some in _by_chain([wish for wish in wishes if wish.count], chains).items():
        grown = [wish for wish in some if _kind(wish) in raised and _is_grown(wish, wishes, before)]
        if not grown:
            continue
        found = _shortage(chains[key], some) if key is not None else None
        if key is None or found is not None:
            for wish in _at_fault(grown, None if key is None else chains[key], found):
                told = _why(wish, None if key is None else chains[key], found)
                yield Problem(f"{wish.path}.cellNumber", told)


def _at_fault(
    grown: Sequence[Wish], chain: SeenChain | None, found: Shortage | None
) -> Sequence[Wish]:
    """Return the promises of the level that is short and of those above it, if any of them grew.

    Cells of lower levels are given after them.
    """
    if chain is None or found is None:
        return grown
    short = set(chain.levels[found.level - 1 :])
    return [wish for wish in grown if wish.level in short] or grown


def _by_chain(
    wishes: Sequence[Wish], chains: Mapping[ChainKey, SeenChain]
) -> dict[ChainKey | None, list[Wish]]:
    found: dict[ChainKey | None, list[Wish]] = {}
    for wish in wishes:
        found.setdefault(next(_chains_of(wish, chains), None), []).append(wish)
    return found


def _shortage(chain: SeenChain, wishes: Sequence[Wish]) -> Shortage | None:
    promised: Counter[int] = Counter()
    for wish in wishes:
        promised[chain.levels.index(wish.level) + 1] += wish.count
    forest = plant(chain.composition, top_level=len(chain.levels), levels=promised)
    found = forest.find_shortage(promised)
    # Whether it fits was not found out in time: then it is not refused.
    return found if found is not None and found.is_proven else None


def _why(wish: Wish, chain: SeenChain | None, found: Shortage | None) -> str:
    cells = f"{count_of(wish.count, 'cell')} of level {quote(wish.level)} promised"
    of_type, seen = wish.of_type, f"seen in the last {SEEN_DAYS} days"
    if chain is None or found is None:
        short = f"no node {of_type} and that level was {seen}"
    else:
        level = quote(chain.levels[found.level - 1])
        numbers = f"{found.promised} are promised in all and {found.available} can be given"
        short = f"nodes {of_type} {seen} do not back it: of level {level}, {numbers}"
    hint = "lower it, or declare nodes that will be added under expectedNodes"
    return f"{cells}, but {short}; {hint}"


def _kind(wish: Wish) -> CellKind:
    return wish.leaf_type, wish.level, wish.domain


def _totals(wishes: Sequence[Wish]) -> Counter[CellKind]:
    totals: Counter[CellKind] = Counter()
    for wish in wishes:
        totals[_kind(wish)] += wish.count
    return totals


def _is_grown(wish: Wish, wishes: Sequence[Wish], before: Sequence[Wish]) -> bool:
    """Whether the VC of a promise is promised more of the same than before."""
    own = [one for one in wishes if one.vc == wish.vc]
    return (
        _totals(own)[_kind(wish)]
        > _totals([one for one in before if one.vc == wish.vc])[_kind(wish)]
    )
