"""What the flags ask for."""

import re
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.whatif.sources.generated import Workload
from policy.errors import SettingsError
from policy.queues.durations import parse_duration
from policy.submission import LeafType
from policy.wording import quote
from timemachine.capacity import Goal, Measure
from timemachine.comparison import Grouping
from timemachine.worlds import AddedNodes

NODE_LEAF_CELLS: Final = 8
"""The leaf cells of a node of the cluster that a trace is played on."""
_NODES: Final = re.compile(r"\+([0-9]{1,6}):(.+)")
_LEAF_CELLS: Final = re.compile(r"([0-9]{1,7})(?::(.+))?")
_FEW_LEAF_CELLS, _MOST_LEAF_CELLS = NODE_LEAF_CELLS, 400_000
_MOST_DAYS, _MOST_LOAD = 366.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatCluster:
    """Nodes without a Cluster document: what a trace is played on."""

    nodes: int
    leaf_type: LeafType


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to play, and what differs."""

    policies: tuple[str, ...]
    cluster: str | None
    before: tuple[str, ...]
    added: tuple[AddedNodes, ...]
    goal: Goal | None
    file: Path | None
    trace: Path | None
    workload: Workload | None
    flat: FlatCluster

    @property
    def is_recorded(self) -> bool:
        """Whether the arrivals are from the decision log, so that it tells the cluster, too."""
        return self.trace is None and self.workload is None


def read_request(options: Namespace) -> Request:
    """Read the flags. Raises SettingsError if they contradict each other."""
    sources = [one for one in ("file", "trace", "generate") if getattr(options, one) is not None]
    if len(sources) > 1:
        raise SettingsError(f"--{sources[0]} and --{sources[1]} exclude each other")
    flat = _read_flat(options.leaf_cells)
    added = _read_nodes(options.nodes) if options.nodes else ()
    goal = _read_goal(options.goal) if options.goal else None
    if goal is not None and len(added) != 1:
        raise SettingsError("--goal needs --nodes with one leaf type: the most nodes to add")
    return Request(
        policies=tuple(options.policy),
        cluster=options.cluster,
        before=tuple(options.before),
        added=added,
        goal=goal,
        file=None if options.file is None else Path(options.file),
        trace=None if options.trace is None else Path(options.trace),
        workload=_read_workload(options.generate, flat) if options.generate else None,
        flat=flat,
    )


def _read_nodes(text: str) -> tuple[AddedNodes, ...]:
    added: list[AddedNodes] = []
    for part in text.split(","):
        found = _NODES.fullmatch(part.strip())
        if found is None or not int(found[1]):
            form = "numbers and leaf types such as +16:A100,+4:H100"
            raise SettingsError(f"--nodes must be {form}, not {quote(text)}")
        added.append(AddedNodes(number=int(found[1]), leaf_type=LeafType(found[2])))
    return tuple(added)


def _read_flat(text: str) -> FlatCluster:
    found = _LEAF_CELLS.fullmatch(text)
    if found is None or not _FEW_LEAF_CELLS <= int(found[1]) <= _MOST_LEAF_CELLS:
        form = f"a number from {_FEW_LEAF_CELLS} to {_MOST_LEAF_CELLS:,}, such as 512 or 512:A100"
        raise SettingsError(f"--leaf-cells must be {form}, not {quote(text)}")
    if int(found[1]) % NODE_LEAF_CELLS:
        raise SettingsError(f"--leaf-cells must be a multiple of {NODE_LEAF_CELLS}, not {found[1]}")
    nodes = int(found[1]) // NODE_LEAF_CELLS
    return FlatCluster(nodes=nodes, leaf_type=LeafType(found[2] or "gpu"))


def _read_pairs(flag: str, text: str, form: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in text.split(","):
        key, is_pair, value = part.partition("=")
        if not is_pair or not value.strip() or key.strip() in pairs:
            raise SettingsError(f"{flag} must be {form}, not {quote(text)}")
        pairs[key.strip()] = value.strip()
    return pairs


def _read_goal(text: str) -> Goal:
    form = (
        "a measure (mean, median, p95 or longest) with a duration, and perhaps whose wait it is "
        "(vc, group, class or size), such as vc=lab,p95=2h"
    )
    pairs = _read_pairs("--goal", text, form)
    measures = [one for one in Measure if one in pairs]
    groupings = [one for one in Grouping if one in pairs]
    known = {*measures, *groupings}
    if len(measures) != 1 or len(groupings) > 1 or known != pairs.keys():
        raise SettingsError(f"--goal must be {form}, not {quote(text)}")
    try:
        seconds = parse_duration(pairs[measures[0]])
    except ValueError as exc:
        raise SettingsError(f"--goal: {measures[0]} {exc}") from exc
    grouping = groupings[0] if groupings else None
    name = pairs[grouping] if grouping is not None else ""
    return Goal(measure=measures[0], seconds=seconds, grouping=grouping, name=name)


def _read_workload(text: str, flat: FlatCluster) -> Workload:
    form = "days, load and seed, such as days=2,load=0.9,seed=1"
    pairs = {"days": "2", "load": "0.9", "seed": "1", **_read_pairs("--generate", text, form)}
    try:
        days, load = float(pairs.pop("days")), float(pairs.pop("load"))
        seed = int(pairs.pop("seed"))
    except ValueError:
        raise SettingsError(f"--generate must be {form}, not {quote(text)}") from None
    if pairs or not 0.0 < days <= _MOST_DAYS or not 0.0 < load <= _MOST_LOAD:
        limits = f"at most {_MOST_DAYS:g} days and a load of at most {_MOST_LOAD:g}"
        raise SettingsError(f"--generate must be {form}, {limits}, not {quote(text)}")
    leaf_cells = flat.nodes * NODE_LEAF_CELLS
    return Workload(days=days, load=load, leaf_cells=leaf_cells, seed=seed)
