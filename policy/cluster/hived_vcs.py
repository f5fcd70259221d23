"""HiveD's virtual clusters: which cells each was promised.

A dotted type `chain.type.type` names a chain by its first part and a level of it by its last; HiveD
ignores the parts between, so a mistake there is only a warning.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from policy.cluster.fields import Path, cell_count_of, entries_of, named_entries_of, text_of
from policy.cluster.hived_cells import PhysicalCells
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import VcName
from policy.topology import Chain, ChainName, PhysicalCell, PinnedCellId, Promise, VirtualCluster
from policy.wording import join_path, listing, quote

VCS_PATH: Final = "virtualClusters"
_SHOWN_NAMES: Final = 20


@dataclass(slots=True)
class VirtualClusters:
    """The VCs, as far as they could be read."""

    cells: PhysicalCells
    vcs: dict[VcName, VirtualCluster] = field(default_factory=dict)
    claims: dict[PinnedCellId, Path] = field(default_factory=dict)
    """Promised pinned cells, and the path of the promise."""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def add(self, name: str, entry: Mapping[str, Plain]) -> None:
        """Read one VC."""
        path: Path = (VCS_PATH, name)
        promises = [
            self._promise(cell, (*path, "virtualCells", place))
            for place, cell in entries_of(entry, "virtualCells")
        ]
        pinned = [
            self._claim(cell, (*path, "pinnedCells", place))
            for place, cell in entries_of(entry, "pinnedCells")
        ]
        self.vcs[VcName(name)] = VirtualCluster(
            name=VcName(name),
            promises=tuple(promise for promise in promises if promise is not None),
            pinned=tuple(claim for claim in pinned if claim is not None),
        )

    def _promise(self, entry: Mapping[str, Plain], path: Path) -> Promise | None:
        dotted, count = text_of(entry, "cellType"), cell_count_of(entry, "cellNumber")
        if not dotted or count is None:
            return None  # the models report it
        if entry.get("cellNumber") is None:
            self._warn((*path, "cellNumber"), "is not given, so no cell is promised")
        parts = dotted.split(".")
        where = (*path, "cellType")
        chain = self._chain(parts[0], where)
        level = None if chain is None else self._level(parts, chain, where)
        if chain is None or level is None or count == 0:
            return None
        return Promise(chain=chain.name, level=level, count=count)

    def _chain(self, name: str, where: Path) -> Chain | None:
        chain = self.cells.chains.get(ChainName(name))
        if chain is None and name not in self.cells.tops:
            known = _names(list(self.cells.tops))
            message = f"there is no chain {quote(name)}: it is not the type of a top cell ({known})"
            self._report(where, message)
        return chain

    def _level(self, parts: list[str], chain: Chain, where: Path) -> int | None:
        """Find the last part in the chain, and check the order of those before."""
        ladder = [str(level.cell_type) for level in reversed(chain.levels)]
        if parts[-1] not in ladder:
            known = _names(ladder)
            message = f"{quote(parts[-1])} is not in the chain {quote(chain.name)} ({known})"
            self._report(where, message)
            return None
        places = [ladder.index(part) if part in ladder else -1 for part in parts]
        if any(below <= above for above, below in pairwise(places)):
            message = f"the parts of {quote('.'.join(parts))} are not in the order of the chain"
            self._warn(where, f"{message} ({_names(ladder)}); only the first and the last count")
        return len(ladder) - ladder.index(parts[-1])

    def _claim(self, entry: Mapping[str, Plain], path: Path) -> PinnedCellId | None:
        text = text_of(entry, "pinnedCellId")
        if not text:
            return None  # the models report it
        pinned, where = PinnedCellId(text), (*path, "pinnedCellId")
        if pinned not in self.cells.pinned:
            self._report(where, f"there is no physical cell with the pinnedCellId {quote(pinned)}")
            return None
        first = self.claims.setdefault(pinned, where)
        if first is not where:
            self._report(where, f"{quote(pinned)} is promised by {join_path(first)} already")
            return None
        return pinned

    def check_pinned(self) -> None:
        """Report pinned cells inside each other, and those that no VC was promised."""
        for chain in self.cells.chains.values():
            for cell in chain.cells:
                self._check_nesting(cell, None)
        for pinned, path in self.cells.pinned.items():
            if pinned not in self.claims:
                message = f"{quote(pinned)} is not promised to any VC, so it is not reserved"
                self._warn((*path, "pinnedCellId"), message)

    def _check_nesting(self, cell: PhysicalCell, outer: PinnedCellId | None) -> None:
        if cell.pinned in self.claims:
            if outer is not None:
                message = (
                    f"{quote(cell.pinned or '')} lies in {quote(outer)}, which is promised too"
                )
                self._report((*self.cells.pinned[cell.pinned], "pinnedCellId"), message)
            outer = cell.pinned
        for child in cell.children:
            self._check_nesting(child, outer)

    def _report(self, path: Path, message: str) -> None:
        self.problems.append(Problem(join_path(path), message))

    def _warn(self, path: Path, message: str) -> None:
        self.warnings.append(Problem(join_path(path), message))


def read_vcs(data: Mapping[str, Plain], cells: PhysicalCells) -> VirtualClusters:
    """Read all virtual clusters against the cells that exist."""
    found = VirtualClusters(cells)
    for name, entry in named_entries_of(data, VCS_PATH):
        found.add(name, entry)
    if cells.pinned:
        found.check_pinned()
    return found


def _names(names: list[str]) -> str:
    shown = [quote(name) for name in names[:_SHOWN_NAMES]]
    return listing([*shown, "…"] if len(names) > _SHOWN_NAMES else shown) or "there is none"
