"""The topology: cells as the Cluster document in force and, if derived, the nodes describe them."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NoReturn

from extender.cells.observe.reconfiguration import Effect, GangEffect
from extender.cells.views.listings import Stepwise
from extender.cluster.cluster import Cluster
from kube.follow.policies import PolicySink
from kube.marks import DEFAULT_LEAF_RESOURCES
from policy.errors import Problem
from policy.submission import GangKey
from policy.wording import count_of
from service.tasks import in_slices, wait_up_to

logger = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.5
"""Nodes that join or leave within this time are built into cells together, to save work."""
_EVENT_PROBLEMS: Final = 3
"""How many promises an Event names; the log has all."""
_PROMISES: Final = "virtualClusters."


class TopologyFollower:
    """Gives the engine the cells that the Cluster document in force describes."""

    def __init__(self, cluster: Cluster, policies: PolicySink, *, turn: asyncio.Lock) -> None:
        """`turn` is held while the cluster is changed in steps."""
        self._cluster = cluster
        self._policies = policies
        self._turn = turn
        self._news = asyncio.Event()
        self._in_force: str | None = None
        self._is_live = False
        self.problems: tuple[Problem, ...] = ()
        """Why the cells differ from the document that exists, or from none."""
        self._unbacked: list[str] = []
        """The promises that nodes do not back, as reported last."""
        self._warned: list[str] = []
        """The paths of warnings about nodes, as reported last."""
        self.on_downgraded: list[Callable[[GangKey], None]] = []
        """Callbacks that run with each gang that a change has left without a guarantee."""
        self.on_promoted: list[Callable[[GangKey], None]] = []
        """Callbacks that run with each gang that has its guarantee again."""
        self.usable = asyncio.Event()
        """Set once there is a valid Cluster document, or none at all."""
        policies.on_change.append(self._follow)

    def build(self) -> Stepwise[None]:
        """Build the first cells."""
        yield from self._use(self._policies.cluster_text)

    def start(self) -> None:
        """Follow every change from now on, also those since the first cells were built."""
        self._is_live = True
        self._follow()

    async def run(self) -> NoReturn:
        """Follow the document and, where cells are derived from them, nodes, until cancelled."""
        while True:
            await wait_up_to(_GATHER_SECONDS, self._news)
            self._news.clear()
            if self._is_live:
                async with self._turn:
                    await in_slices(self.catch_up())

    def catch_up(self) -> Stepwise[None]:
        """Put the latest document in force, or build the cells of nodes that have changed."""
        text = self._policies.cluster_text
        if text != self._in_force and not self._is_kept(text):
            yield from self._use(text)
        elif self._cluster.is_stale:
            self._log((yield from self._cluster.refresh_topology_stepwise()))

    def _follow(self) -> None:
        if not self._policies.lacks_valid_cluster:
            self.usable.set()
        if self._is_live and self._policies.cluster_text != self._in_force:
            self._news.set()

    def _is_kept(self, text: str | None) -> bool:
        """Tell whether the last document stays in force, because it was deleted too early."""
        running = self._cluster.members.gang_count if text is None else 0
        if not running:
            return False
        message = f"was deleted while {running} gangs run; the last version stays in force"
        if not self.problems:
            logger.error("cluster document deleted while gangs run", extra={"gangs": running})
        self.problems = (Problem("Cluster document", message),)
        return True

    def _use(self, text: str | None) -> Stepwise[None]:
        self.problems = ()
        self._in_force = text
        document = self._policies.policy.cluster
        for warning in document.warnings_for(DEFAULT_LEAF_RESOURCES) if document else ():
            logger.warning("cluster document has a warning", extra={"warning": str(warning)})
        if text is not None or self._cluster.topology is not None:
            self._log((yield from self._cluster.use_document_stepwise(text)))

    def _log(self, effects: list[GangEffect]) -> None:
        changed = [effect for effect in effects if effect.effect is not Effect.KEPT]
        problems = [str(problem) for problem in self._cluster.problems]
        extra = {"gangs": len(effects), "changed": [effect.reason for effect in changed]}
        logger.info("cells built", extra={**extra, "problems": problems})
        told = {Effect.DOWNGRADED: self.on_downgraded, Effect.PROMOTED: self.on_promoted}
        for one in changed:
            for tell in told.get(one.effect, ()):
                tell(one.gang)
        self._report_promises(problems)
        self._report_nodes()

    def _report_nodes(self) -> None:
        """Tell admins which nodes are not as expected, and which promises they make unclear.

        Numbers and names of nodes change while nodes join: only another kind of warning is news.
        """
        document = self._policies.policy.cluster
        if document is None or not document.depends_on_nodes:
            return
        before, self._warned = self._warned, [one.path for one in self._cluster.warnings]
        if self._warned == before:
            return
        warnings = [str(warning) for warning in self._cluster.warnings]
        if warnings:
            logger.warning("nodes differ from the document", extra={"warnings": warnings})
        unclear = [one for one in warnings if one.startswith(_PROMISES)]
        if unclear and any(
            path.startswith(_PROMISES) and path not in before for path in self._warned
        ):
            message = (
                f"Give entries of nodeTopology names, and promises a domain: {_shown(unclear)}"
            )
            self._policies.report_on_cluster("PromisesUnclear", message, is_warning=True)

    def _report_promises(self, problems: list[str]) -> None:
        """Tell admins, once for each change, which promises to VCs nodes do not back."""
        before, self._unbacked = self._unbacked, problems
        if problems == before:
            return
        if problems:
            logger.warning("promises cut: nodes do not back them", extra={"problems": problems})
            message = f"Cut until nodes are added: {_shown(problems)}"
            self._policies.report_on_cluster("PromisesCut", message, is_warning=True)
        else:
            logger.info("all promises are backed by nodes again")
            message = "Nodes back all promises to VCs again"
            self._policies.report_on_cluster("PromisesBacked", message, is_warning=False)


def _shown(promises: list[str]) -> str:
    rest = len(promises) - _EVENT_PROBLEMS
    more = f"; and {count_of(rest, 'more promise')}" if rest > 0 else ""
    return f"{'; '.join(promises[:_EVENT_PROBLEMS])}{more}"
