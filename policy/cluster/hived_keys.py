"""Unknown keys of HiveD's YAML: mistakes, or keys that have no effect here.

HiveD ignores unknown keys, so files that work today may contain some (of OpenPAI, of a patched
HiveD): those are warnings. But a key of the format in the wrong place, or one that nearly equals
such a key, is a mistake that HiveD did not report: that is a problem.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from policy.cluster.fields import Path, entries_of, named_entries_of
from policy.documents.models import items_of, mapping_of
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.wording import count_of, join_path, listing, quote

_HEAD: Final = ("apiVersion", "kind")
SETTINGS: Final = (
    "kubeApiServerAddress",
    "kubeConfigFilePath",
    "webServerAddress",
    "forcePodBindThreshold",
    "waitingPodSchedulingBlockMilliSec",
)
"""Settings of HiveD's process; ours has flags instead."""
SKU_KEYS: Final = ("skuTypes", "gpuTypes", "leafCellTypes")
"""CPU and memory of a leaf type, under the names of different versions; OpenPAI alone uses them."""

SKU_REASON: Final = (
    "CPU and memory of leaf types are not used; pods state what they need, and shapes can set it"
)

_FORMER: Final = {"reservationId": "pinnedCellId", "reservedCells": "pinnedCells"}
"""Keys of the first HiveD; later versions ignore them, and the cell is not pinned."""
_MAX_CHECKED: Final = 200
_CLOSE: Final = 2
_MAX_WORD_CHARS: Final = 40


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of mapping in the format."""

    name: str
    keys: tuple[str, ...]
    quiet: tuple[str, ...] = ()
    """Keys that are accepted without effect, and not suggested."""


_TOP: Final = _Kind(
    "the top", ("physicalCluster", "virtualClusters", "quarantine", "foreign"), (*_HEAD, *SETTINGS)
)
_CLUSTER: Final = _Kind("physicalCluster", ("cellTypes", "physicalCells", "skuTypes"), SKU_KEYS)
_TYPE: Final = _Kind("a cell type", ("childCellType", "childCellNumber", "isNodeLevel"))
_CELL: Final = _Kind("a physical cell", ("cellType", "cellAddress", "pinnedCellId", "cellChildren"))
_VC: Final = _Kind("a virtual cluster", ("virtualCells", "pinnedCells"))
_VIRTUAL: Final = _Kind("an entry of virtualCells", ("cellType", "cellNumber"))
_PINNED: Final = _Kind("an entry of pinnedCells", ("pinnedCellId",))
_KINDS: Final = (_TOP, _CLUSTER, _TYPE, _CELL, _VC, _VIRTUAL, _PINNED)


def check_keys(data: Mapping[str, Plain]) -> tuple[list[Problem], list[Problem]]:
    """Find the keys that have no meaning in their place: problems, and warnings."""
    unknown = _unknown(data)
    problems: list[Problem] = []
    warnings = [_ignored_setting(key) for key in SETTINGS if key in data]
    cluster = mapping_of(data.get("physicalCluster"))
    warnings += [
        Problem(join_path(("physicalCluster", key)), f"is read, but {SKU_REASON}")
        for key in SKU_KEYS
        if key in cluster
    ]
    # Checking is slow for a text made for that purpose, so only some keys are checked.
    for path, kind, key in islice(unknown, _MAX_CHECKED):
        mistake = _mistake(key, kind)
        where = join_path((*path, key))
        if mistake:
            problems.append(Problem(where, f"unknown key; {mistake}"))
        else:
            known = f"known keys are {listing(kind.keys)}"
            warnings.append(Problem(where, f"unknown key, it has no effect; {known}"))
    rest = sum(1 for _ in unknown)
    if rest:
        warnings.append(Problem("", f"{count_of(rest, 'more unknown key')} not shown"))
    return problems, warnings


def _ignored_setting(key: str) -> Problem:
    return Problem(key, "is a setting of HiveD's process and has no effect here")


def _unknown(data: Mapping[str, Plain]) -> Iterator[tuple[Path, _Kind, str]]:
    for path, kind, entry in _mappings(data):
        for key in entry:
            if key not in kind.keys and key not in kind.quiet:
                yield path, kind, key


def _mappings(data: Mapping[str, Plain]) -> Iterator[tuple[Path, _Kind, Mapping[str, Plain]]]:
    yield (), _TOP, data
    cluster = mapping_of(data.get("physicalCluster"))
    yield ("physicalCluster",), _CLUSTER, cluster
    for name, entry in named_entries_of(cluster, "cellTypes"):
        yield ("physicalCluster", "cellTypes", name), _TYPE, entry
    yield from _cells(cluster, ("physicalCluster",), "physicalCells")
    for name, vc in named_entries_of(data, "virtualClusters"):
        path = ("virtualClusters", name)
        yield path, _VC, vc
        for place, entry in entries_of(vc, "virtualCells"):
            yield (*path, "virtualCells", place), _VIRTUAL, entry
        for place, entry in entries_of(vc, "pinnedCells"):
            yield (*path, "pinnedCells", place), _PINNED, entry


def _cells(
    above: Mapping[str, Plain], path: Path, key: str
) -> Iterator[tuple[Path, _Kind, Mapping[str, Plain]]]:
    for place, cell in enumerate(items_of(above, key)):
        if isinstance(cell, dict):
            here = (*path, key, place)
            yield here, _CELL, cell
            yield from _cells(cell, here, "cellChildren")


def _mistake(key: str, kind: _Kind) -> str | None:
    """Say what was probably meant; None if that is not known."""
    if key == "<<":
        return "merge keys are not supported; write the values out"
    if key in _FORMER:
        return f"it is now called {_FORMER[key]}"
    for known in kind.keys:
        if _is_close(key, known):
            return f"did you mean {known}?"
    places = [other.name for other in _KINDS if key in other.keys]
    if places:
        return f"{quote(key)} belongs to {' or '.join(places)}, not to {kind.name}"
    return None


def _is_close(word: str, known: str) -> bool:
    """Whether they differ by two letters at most, upper and lower case and - and _ aside."""
    first, second = _letters(word), _letters(known)
    if len(word) > _MAX_WORD_CHARS or abs(len(first) - len(second)) > _CLOSE:
        return False
    return _distance(first, second) <= _CLOSE


def _letters(word: str) -> str:
    return word[: _MAX_WORD_CHARS + 1].lower().replace("-", "").replace("_", "")


def _distance(first: str, second: str) -> int:
    """Count the letters to add, drop or change to get from one word to the other."""
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, start=1):
        previous, row[0] = row[0], place
        for column, other in enumerate(second, start=1):
            changed = previous + (letter != other)
            previous = row[column]
            row[column] = min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]
