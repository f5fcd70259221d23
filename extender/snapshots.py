"""Views of the engine, made once per state of it and shared by all who look.

A view of a large cluster costs some tenths of a second, and the engine must not change meanwhile;
so views are made on the event loop, and never twice for the same state.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from extender.cells.model import GangView
from extender.cells.views import CellView, VcView
from extender.cluster import Cluster
from policy.submission import GangKey, VcName

T = TypeVar("T")


class Snapshots:
    """The engine's views, as of now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = -1
        self._made: dict[str, Any] = {}

    def gangs(self) -> Mapping[GangKey, GangView]:
        """All gangs, by key."""
        return self._make(
            "gangs", lambda: {gang.gang: gang for gang in self._cluster.engine.gangs()}
        )

    def cells(self) -> Sequence[CellView]:
        """All physical cells, as trees."""
        return self._make("cells", self._cluster.engine.cells)

    def vcs(self) -> Mapping[VcName, VcView]:
        """All VCs."""
        return self._make("vcs", self._cluster.engine.vcs)

    def _make(self, name: str, make: Callable[[], T]) -> T:
        if self._version != self._cluster.version:
            self._version = self._cluster.version
            self._made = {}
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made
