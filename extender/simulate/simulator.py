"""Simulate a pod up to its place: what the webhook and then the planner would decide."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict, Field

from extender.cells.model import Decision, Reason
from extender.simulate.admission import AdmissionSimulator, SimulatedAdmission
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


class Simulator:
    """Simulates pods; changes nothing."""

    def __init__(self, *, admission: AdmissionSimulator, places: PlaceSimulator) -> None:
        self._admission = admission
        self._places = places

    async def simulate(self, arguments: SimulateArguments) -> Simulation:
        """Say what would happen to a pod if it were submitted now, with its whole gang.

        Raises RequestError for a pod that is invalid or not managed.
        """
        user = SimulatedUser(arguments.user, tuple(arguments.groups))
        admission = await self._admission.admit(arguments.pod, user)
        nodes = None if arguments.nodes is None else _names(arguments.nodes)
        plan = await self._plan(admission.stored, nodes)
        return Simulation(admission=admission, plan=plan)

    async def _plan(
        self, stored: Mapping[str, Any] | None, nodes: Collection[NodeName] | None
    ) -> Decision | Reason | None:
        if stored is None:
            return None
        return await in_slices(self._places.place_stepwise(stored, nodes=nodes))


def _names(nodes: Collection[str]) -> dict[NodeName, None]:
    return dict.fromkeys(map(NodeName, nodes))
