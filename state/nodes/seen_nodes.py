"""The port to the nodes that were seen lately. Tests have a twin in memory."""

from collections.abc import Sequence
from typing import Protocol

from policy.cluster.document import LiveNode, NodeCount
from policy.submission import NodeName
from state.ledger.ledger import LeaderTerm


class SeenNodes(Protocol):
    """The nodes with devices that were there within the last `SEEN_DAYS` days."""

    async def observe(
        self, nodes: Sequence[LiveNode], *, gone: Sequence[NodeName], term: LeaderTerm
    ) -> None:
        """Note nodes that joined or changed, and nodes that are gone.

        Raises ConflictError if another leader writes now, BackendError if it is unknown whether the
        nodes are noted; noting them again is harmless.
        """

    async def retain(self, names: Sequence[NodeName], *, term: LeaderTerm) -> None:
        """Note that all other nodes are gone. Raises the same."""

    async def count(self, keys: Sequence[str]) -> tuple[NodeCount, ...]:
        """Count the nodes by their devices and by these labels, in a defined order.

        A node that had several numbers of devices counts with the largest. Raises BackendError.
        """

    async def present(self) -> tuple[LiveNode, ...]:
        """Return the nodes that are there, by name. Raises BackendError."""

    async def version(self) -> int:
        """Return a number that grows with every change of the nodes. Raises BackendError.

        That a node was gone for long enough to be forgotten is no change.
        """
