"""The VCs that are open to a user, and those in which a gang would keep its class."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from kube.read.managed_pod import ManagedPod, charged_gang
from policy.admission.preview import occupancy_of
from policy.errors import BackendError
from policy.policy import Policy
from policy.quotas.limits import Scope
from policy.rules.decision import Outcome
from policy.submission import ClassName, Occupancy, Submission, UserName, VcName
from policy.topology import Topology
from state.ledger.ledger import Ledger

_MOST: Final = 64
"""VCs to which the rules are applied."""


class OpenVcs:
    """Applies identity and rules to gangs, as if they named another VC."""

    def __init__(
        self,
        *,
        policy: Callable[[], Policy],
        topology: Callable[[], Topology | None],
        ledger: Ledger | None,
    ) -> None:
        self._policy = policy
        self._topology = topology
        self._ledger = ledger

    def all(self) -> list[VcName]:
        """Return all VCs."""
        topology = self._topology()
        return sorted(topology.vcs) if topology is not None else []

    def of_user(self, user: str, groups: Iterable[str]) -> list[VcName]:
        """Return the VCs that are open to a user; `groups` are those of the API server."""
        identity = self._policy().identity
        mine = identity.groups_of(user, groups)
        return identity.open_vcs(self.all(), user=UserName(user), groups=mine)

    async def of_gang(self, pod: ManagedPod, *, leaf_count: int, members: int) -> list[VcName]:
        """Return the other VCs that are open to the owner of a gang and leave it its class.

        A VC is left out if rules lower the class there or refuse the gang, or if they depend on
        what the owner holds and that cannot be read.
        """
        open_vcs = self.of_user(pod.charged_user, pod.submitter_groups)
        others = [vc for vc in open_vcs if vc != pod.vc][:_MOST]
        usage = await self._read_usage(pod, leaf_count) if others else None
        asked = Submission(
            user=pod.charged_user,
            groups=self._policy().identity.groups_of(pod.charged_user, pod.submitter_groups),
            vc=pod.vc,
            requested_class=pod.requested_class or _class_of(pod),
            gang=charged_gang(pod),
            gang_size=members,
            leaf_count=leaf_count,
            leaf_type=pod.leaf_type,
            labels=pod.labels,
        )
        return [vc for vc in others if self._keeps_class(pod, replace(asked, vc=vc), usage)]

    def _keeps_class(self, pod: ManagedPod, asked: Submission, usage: Occupancy | None) -> bool:
        policy = self._policy()
        rules = policy.rules.decide(asked, usage=usage, classes=policy.classes)
        if rules.outcome is Outcome.REFUSED or (rules.needs_usage and usage is None):
            return False
        return not policy.classes.is_lower(rules.final_class, _class_of(pod))

    async def _read_usage(self, pod: ManagedPod, leaf_count: int) -> Occupancy | None:
        """Return what the owner holds beside the gang; None if that cannot be read."""
        if self._ledger is None:
            return None
        try:
            held = occupancy_of(await self._ledger.usage(Scope(pod.charged_user)))
        except (BackendError, ValueError):
            return None
        is_high = self._policy().classes.is_high(_class_of(pod))
        return Occupancy(
            occupied=max(0, held.occupied - leaf_count),
            occupied_high=max(0, held.occupied_high - leaf_count * is_high),
        )


def _class_of(pod: ManagedPod) -> ClassName:
    return pod.charged_class or ClassName("")
