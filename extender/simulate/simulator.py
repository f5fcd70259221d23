"""Simulate a pod up to its place: what the webhook and then the planner would decide."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pydantic import ConfigDict, Field

from extender.cells.model import Decision, Reason, Reject, Wait
from extender.queue.variants.model import Variants
from extender.simulate.admission import AdmissionSimulator, SimulatedAdmission
from extender.simulate.gang_variants import GangVariants, is_varied
from extender.simulate.places import PlaceSimulator
from extender.simulate.submitted import SimulatedUser
from policy.submission import NodeName
from service.bodies import Body
from service.tasks import in_slices

_ANONYMOUS: Final = "system:anonymous"


class SimulateArguments(Body):
    """A pod to simulate, and its submitter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pod: dict[str, Any] = Field(description="The pod, as given to kubectl.")
    user: str = Field(
        default=_ANONYMOUS,
        description="The user who would create it; by default the owner of the token.",
    )
    groups: list[str] = Field(
        default=[], description="The groups of the user, as the API server knows them."
    )
    nodes: list[str] | None = Field(
        default=None, description="The only nodes that may be used; by default all nodes."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What would happen to a pod."""

    admission: SimulatedAdmission
    plan: Decision | Reason | None
    """What the planner would decide, or what the gang would wait for; None if it is refused."""
    start: Mapping[str, Any] | None = None
    """When it would start, if it would wait for cells."""
    variants: Variants | None = None
    """What would let it start earlier, if it would wait for cells."""


class ExpectedStarts(Protocol):
    """Tells when gangs that wait would start."""

    async def expected_start(self, stored: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Show when the gang of a pod would start."""


class Simulator:
    """Simulates pods; changes nothing."""

    def __init__(
        self,
        *,
        admission: AdmissionSimulator,
        places: PlaceSimulator,
        starts: ExpectedStarts | None = None,
        variants: GangVariants | None = None,
    ) -> None:
        self._admission = admission
        self._places = places
        self._starts = starts
        self._variants = variants

    def of_plans(self) -> "Simulator":
        """Return one that says nothing about later: for a loop that asks whether a gang fits."""
        return Simulator(admission=self._admission, places=self._places)

    async def simulate(self, arguments: SimulateArguments) -> Simulation:
        """Say what would happen to a pod if it were submitted now, with its whole gang.

        Raises RequestError for a pod that is invalid or not managed.
        """
        user = SimulatedUser(arguments.user, tuple(arguments.groups))
        admission = await self._admission.admit(arguments.pod, user)
        nodes = None if arguments.nodes is None else _names(arguments.nodes)
        plan = await self._plan(admission.stored, nodes)
        start = None
        if self._starts is not None and isinstance(plan, Wait) and admission.stored is not None:
            start = await self._starts.expected_start(admission.stored)
        variants = await self._vary(admission.stored, plan) if nodes is None else None
        return Simulation(admission=admission, plan=plan, start=start, variants=variants)

    async def _vary(
        self, stored: Mapping[str, Any] | None, plan: Decision | Reason | None
    ) -> Variants | None:
        """Find what would let a gang start earlier that would wait."""
        if self._variants is None or stored is None or not isinstance(plan, Wait | Reject):
            return None
        imagined = self._places.imagine(stored) if is_varied(plan.request) else None
        if imagined is None:
            return None
        return await self._variants.of_simulated(imagined.gang, imagined.pod, imagined.assume)

    async def _plan(
        self, stored: Mapping[str, Any] | None, nodes: Collection[NodeName] | None
    ) -> Decision | Reason | None:
        if stored is None:
            return None
        return await in_slices(self._places.place_stepwise(stored, nodes=nodes))


def _names(nodes: Collection[str]) -> dict[NodeName, None]:
    return dict.fromkeys(map(NodeName, nodes))
