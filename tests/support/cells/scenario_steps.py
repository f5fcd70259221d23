"""What a step of a scenario does, and what a check demands."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from extender.cells.views.state_views import CellView
from policy.submission import VcName
from tests.support.cells.engine_calls import list_cells, list_vcs, observe_bound
from tests.support.cells.player import Outcome, Player

_STATES = {
    "allocated": "Allocated",
    "preempting": "Preempting",
    "being-preempted": "BeingPreempted",
}


def play(player: Player, step: Mapping[str, Any]) -> None:
    """Do one step, compare its outcome, evaluate its checks."""
    match step["op"]:
        case "check" | "start":
            pass
        case "schedule":
            _schedule(player, step)
        case "submit":
            for name in [name for name in step["pods"] if name not in player.where]:
                _compare(name, (step.get("expect") or {}).get(name), player.cycle(name))
        case "create":
            _create(player, step["pod"])
        case "delete" | "complete":
            player.delete(step["pod"])
        case "restart":
            player.restart(player.configs[step["config"]] if step.get("config") else None)
        case "change_config":
            player.change(player.configs[step["config"]])
        case op:
            _change_node(player, op, step.get("node") or player.where[step["nodeOf"]].node)
    for item in step.get("check", ()):
        check(player, item)


def _change_node(player: Player, op: str, node: str) -> None:
    if op in ("node_bad", "node_cordon"):
        player.set_node(node, ready=False)
    elif op in ("node_healthy", "node_uncordon", "node_add"):
        player.set_node(node, ready=True)
    else:
        assert op == "node_delete", f"unknown step {op}"
        player.delete_node(node)


def _create(player: Player, name: str) -> None:
    pod = player.pods[name]
    if pod.node is not None:
        spec = pod.spec if isinstance(pod.spec, dict) else {}
        pod.spec = spec
        observe_bound(player.engine, pod.request(), node=pod.node, leaf_cells=())  # type: ignore[arg-type]


def _schedule(player: Player, step: Mapping[str, Any]) -> None:
    name, phase = step["pod"], step.get("phase", "Filtering")
    nodes = player.suggested(step.get("playNodes") or step.get("suggestedNodes", "ALL"))
    outcome = Outcome("wait")
    if phase != "Filtering":
        outcome = player.preempt(name, nodes)
    if phase == "Filtering" or (outcome.kind == "wait" and phase == "Preempting"):
        outcome = player.filter(name, nodes)
    _compare(name, step.get("expect"), outcome, phase)
    if outcome.kind == "bind":
        allowed = (step.get("expect") or {}).get("nodeIn")
        assert allowed is None or outcome.node in allowed
        if player.pods[name].spec.get("ignoreK8sSuggestedNodes") is False:
            assert outcome.node in nodes
        if step.get("commit", True) is True:
            player.bind(name)
        elif step.get("commit") is False:
            player.delete(name)


def _compare(name: str, expect: Mapping[str, Any] | None, got: Outcome, phase: str = "") -> None:
    if not expect:
        return
    kinds = expect["kind"] if isinstance(expect["kind"], list) else [expect["kind"]]
    ok = got.kind in kinds or (got.kind == "wait" and "preempt" in kinds and phase == "Filtering")
    assert ok, f"{name}: expected {kinds}, got {got}"
    strangers = set(got.victims) - set(expect.get("victimsAcrossAllNodes", got.victims))
    assert not strangers, f"{name}: victims {strangers}"


def check(player: Player, item: Mapping[str, Any]) -> None:
    """Evaluate one check."""
    ((word, arg),) = ((k, v) for k, v in item.items() if k not in ("knownHived", "why"))
    if word != "inspect":
        _CHECKS[word](player, arg)


def _bound(player: Player, names: list[str]) -> None:
    missing = [name for name in names if name not in player.where]
    assert not missing, f"not bound: {missing}"


def _unbound(player: Player, names: list[str]) -> None:
    assert not [name for name in names if name in player.where]


def _bound_count(player: Player, arg: Any) -> None:
    assert sum(name in player.where for name in arg["pods"]) == arg["n"]


def _nodes(player: Player, names: list[str]) -> list[str]:
    return [player.where[name].node for name in names if name in player.where]


def _same_node(player: Player, names: list[str]) -> None:
    _bound(player, names)
    assert len(set(_nodes(player, names))) == 1


def _different_nodes(player: Player, names: list[str]) -> None:
    _bound(player, names)
    assert len(set(_nodes(player, names))) == len(names)


def _apart(player: Player, arg: Any) -> None:
    _bound(player, arg["pods"] + arg["from"])
    assert not set(_nodes(player, arg["pods"])) & set(_nodes(player, arg["from"]))


def _node_in(player: Player, arg: Any) -> None:
    _bound(player, arg["pods"])
    assert set(_nodes(player, arg["pods"])) <= set(arg["nodes"])


def _node_not_in(player: Player, arg: Any) -> None:
    assert not set(_nodes(player, arg["pods"])) & set(arg["nodes"])


def _node_count(player: Player, arg: Any) -> None:
    assert len(set(_nodes(player, arg["pods"]))) == arg["n"]


def _pods_per_node(player: Player, arg: Any) -> None:
    counts = Counter(_nodes(player, arg["pods"])).values()
    assert sorted(counts) == sorted(arg["counts"])


def _at_most_on_nodes(player: Player, arg: Any) -> None:
    assert sum(node in arg["nodes"] for node in _nodes(player, arg["pods"])) <= arg["n"]


def _walk(cells: list[CellView]) -> Iterator[CellView]:
    for cell in cells:
        yield cell
        yield from _walk(list(cell.children))


def _leaves(player: Player, names: list[str]) -> list[tuple[CellView, ...]]:
    """The paths from the top-level cell to each leaf of the pods."""
    found: list[tuple[CellView, ...]] = []

    def walk(cell: CellView, way: tuple[CellView, ...]) -> None:
        way = (*way, cell)
        if cell.gang is not None and not cell.children:
            found.append(way)
        for child in cell.children:
            walk(child, way)

    for top in list_cells(player.engine):
        walk(top, ())
    wanted = {
        (player.where[name].node, leaf) for name in names for leaf in player.where[name].leaf_cells
    }
    return [
        way
        for way in found
        if any(
            f"/{node}/" in f"/{way[-1].address}" and way[-1].address.rsplit("/", 1)[-1] == str(leaf)
            for node, leaf in wanted
        )
    ]


def _same_cell(player: Player, arg: Any) -> None:
    _bound(player, arg["pods"])
    around = {
        next((cell.address for cell in way if cell.cell_type == arg["cellType"]), None)
        for way in _leaves(player, arg["pods"])
    }
    assert len(around) == 1, around
    assert None not in around


def _same_chain(player: Player, names: list[str]) -> None:
    _bound(player, names)
    assert len({player.where[name].chain for name in names}) == 1


def _leaf_order(player: Player, arg: Any) -> None:
    node = player.where[arg["pod"]].node
    order = [
        int(cell.address.rsplit("/", 1)[-1])
        for cell in _walk(list_cells(player.engine))
        if f"/{node}/" in f"/{cell.address}" and not cell.children
    ]
    given = [order.index(leaf) for leaf in player.where[arg["pod"]].leaf_cells]
    assert given == sorted(given)


def _evicted(player: Player, names: list[str]) -> None:
    assert set(names) <= set(player.evicted)


def _not_evicted(player: Player, names: list[str]) -> None:
    assert not set(names) & set(player.evicted)


def _groups(player: Player, arg: Any) -> None:
    for name, want in arg.items():
        gang = player.gang(name)
        assert gang is not None, f"gang {name} is unknown"
        facts = {
            "state": _STATES[gang.state],
            "guaranteed": gang.is_guaranteed,
            "lazyPreempted": gang.downgraded_by is not None,
            "preemptor": gang.downgraded_by and gang.downgraded_by.name,
        }
        for key, value in want.items():
            allowed = value if isinstance(value, list) else [value]
            assert facts[key] in allowed, f"gang {name}: {key} is {facts[key]}, not {value}"


def _groups_absent(player: Player, names: list[str]) -> None:
    assert not [name for name in names if player.gang(name)]


def _cells(player: Player, arg: Any) -> None:
    for want in arg:
        node = want.get("node") or player.where[want["nodeOf"]].node
        for cell in _walk(list_cells(player.engine)):
            if f"/{node}/" in f"/{cell.address}" and not cell.children:
                allowed = want["state"] if isinstance(want["state"], list) else [want["state"]]
                assert cell.state in allowed, cell
                assert cell.priority == want.get("priority", cell.priority)


def _used_nodes(player: Player, arg: Any) -> None:
    cells = [cell for cell in _walk(list_cells(player.engine)) if cell.is_node]
    known = {cell.address.rsplit("/", 1)[-1] for cell in cells}
    used = {cell.address.rsplit("/", 1)[-1] for cell in cells if cell.state == "Used"}
    assert used == set(_nodes(player, arg["nodesOf"])) & known


def _virtual_cells(player: Player, arg: Any) -> None:
    cells = [
        cell
        for cell in list_vcs(player.engine)[VcName(arg["vc"])].cells
        if cell.chain == arg["chain"] and cell.cell_type == arg["cellType"] and not cell.pinned
    ]
    bad = {cell.address for cell in cells if not cell.is_healthy}
    free = {cell.address for cell in cells if cell.priority < 0}
    rules = {"noneBad": not bad, "freeBad": free <= bad, "allBad": len(bad) == len(cells)}
    assert cells
    assert rules[arg["rule"]], (arg, bad, free)


_CHECKS = {
    "bound": _bound,
    "unbound": _unbound,
    "boundCount": _bound_count,
    "sameNode": _same_node,
    "differentNodes": _different_nodes,
    "apart": _apart,
    "nodeIn": _node_in,
    "nodeNotIn": _node_not_in,
    "nodeCount": _node_count,
    "podsPerNode": _pods_per_node,
    "atMostOnNodes": _at_most_on_nodes,
    "sameCell": _same_cell,
    "sameChain": _same_chain,
    "leafOrder": _leaf_order,
    "evicted": _evicted,
    "notEvicted": _not_evicted,
    "groups": _groups,
    "groupsAbsent": _groups_absent,
    "cells": _cells,
    "usedNodes": _used_nodes,
    "virtualCells": _virtual_cells,
}
