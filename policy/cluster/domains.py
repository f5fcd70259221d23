"""Domains: named entries of `nodeTopology`, and promises that could mean several entries.

A leaf type is the value of a label, so a document alone does not say which entry has nodes of it.
Therefore a promise without a domain is judged in two steps:

- By the document: where an entry with a name offers the level, and another entry too, the promise
  must name its domain.
- By the nodes that were seen: where no entry has a name, a promise is ambiguous only if nodes of
  its leaf type were seen under several entries. So documents from before there were domains stay
  valid as long as they are clear.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from policy.cluster.derived_cells import MAX_DEVICES, NodeTopologyEntry, rules_for
from policy.cluster.derived_promises import Wish
from policy.cluster.document import LiveNode, NodeCount
from policy.cluster.fields import entries_of, named_entries_of
from policy.documents.models import items_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import LeafType, NodeName
from policy.wording import join_path, listing, quote

_SHOWN: Final = 8
_HINT: Final = "give these entries names, and name the promise's domain"
_Entries = list[tuple[int, Mapping[str, Plain]]]


def check_domains(data: Mapping[str, Plain]) -> Iterator[Problem]:
    """Yield names that are given twice, domains that do not exist, and promises that lack one."""
    entries = list(entries_of(data, "nodeTopology"))
    yield from _duplicates(entries)
    for place, expected in entries_of(data, "expectedNodes"):
        yield from _unknown(expected.get("domain"), entries, ("expectedNodes", place, "domain"))
    for name, vc in named_entries_of(data, "virtualClusters"):
        for place, cell in entries_of(vc, "virtualCells"):
            yield from _check_cell(cell, entries, ("virtualClusters", name, "virtualCells", place))


def _duplicates(entries: _Entries) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for place, entry in entries:
        name = entry.get("name")
        if isinstance(name, str) and first.setdefault(name, place) != place:
            other = join_path(("nodeTopology", first[name], "name"))
            yield Problem(join_path(("nodeTopology", place, "name")), f"duplicate of {other}")


def _check_cell(
    cell: Mapping[str, Plain], entries: _Entries, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    level, domain = cell.get("level"), cell.get("domain")
    if domain is not None:
        unknown = list(_unknown(domain, entries, (*path, "domain")))
        own = [one for one in entries if one[1].get("name") == domain]
        if not unknown and own and level in _levels(entries) and level not in _levels(own):
            message = f"domain {quote(str(domain))} has no level {quote(str(level))}"
            unknown = [Problem(join_path((*path, "level")), message)]
        yield from unknown
        return
    offering = [(place, entry) for place, entry in entries if level in _levels([(place, entry)])]
    if len(offering) > 1 and any(entry.get("name") for _, entry in offering):
        shown = listing([_shown(*one) for one in offering[:_SHOWN]])
        message = f"is required: cells of level {quote(str(level))} can be of {shown}"
        yield Problem(join_path((*path, "domain")), message)


def _unknown(domain: Plain, entries: _Entries, path: tuple[str | int, ...]) -> Iterator[Problem]:
    known = [name for _, entry in entries if isinstance(name := entry.get("name"), str) and name]
    if isinstance(domain, str) and domain not in known:
        names = listing([quote(name) for name in known[:_SHOWN]])
        there = f"the domains are {names}" if known else "no entry of nodeTopology has a name"
        yield Problem(join_path(path), f"{quote(domain)} is not a domain; {there}")


def _levels(entries: _Entries) -> list[Plain]:
    return [
        key
        for _, entry in entries
        for key in (*items_of(entry, "levels"), entry.get("leafResource"))
        if key is not None
    ]


def _shown(place: int, entry: Mapping[str, Plain]) -> str:
    name = entry.get("name")
    where = join_path(("nodeTopology", place))
    return f"domain {quote(str(name))}" if name else f"{where}, which has no name"


def find_doubtful(wishes: Sequence[Wish], rules: Sequence[NodeTopologyEntry]) -> Iterator[Problem]:
    """Yield the promises that are clear only as long as one entry has nodes of their leaf type."""
    for wish in wishes:
        places = [place for place, rule in enumerate(rules) if wish.may_be_of(rule)]
        if wish.count and len(places) > 1:
            shown = listing([join_path(("nodeTopology", place)) for place in places[:_SHOWN]])
            message = f"can be of {shown}, and is ambiguous once nodes of several of them have"
            yield Problem(wish.path, f"{message} leaf type {quote(wish.leaf_type)}; {_HINT}")


def find_ambiguous(
    wishes: Sequence[Wish], rules: Sequence[NodeTopologyEntry], counts: Sequence[NodeCount]
) -> Iterator[Problem]:
    """Yield the promises of which nodes were seen under several entries."""
    seen = _seen_types(rules, counts)
    for wish in wishes:
        places = [
            place
            for place, rule in enumerate(rules)
            if wish.may_be_of(rule) and (place, wish.leaf_type) in seen
        ]
        if wish.count and len(places) > 1:
            shown = listing([join_path(("nodeTopology", place)) for place in places[:_SHOWN]])
            message = f"nodes of leaf type {quote(wish.leaf_type)} were seen under {shown}"
            yield Problem(f"{wish.path}.domain", f"is required: {message}; {_HINT}")


def _seen_types(
    rules: Sequence[NodeTopologyEntry], counts: Sequence[NodeCount]
) -> dict[tuple[int, LeafType], None]:
    found: dict[tuple[int, LeafType], None] = {}
    for one in counts:
        node = LiveNode(name=NodeName(""), labels=one.labels, leaf_counts=one.leaf_counts)
        for place, rule in rules_for(node, rules):
            own = one.labels.get(rule.leaf_type_label)
            if own and 0 < one.leaf_counts.get(rule.leaf_resource, 0) <= MAX_DEVICES:
                found[place, LeafType(own)] = None
    return found
