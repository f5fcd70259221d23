"""Whether a gang could ever start: in the same world, while nothing else runs.

Gangs that never can are not planned: they would wait at the head of their pools for ever.
"""

from dataclasses import replace
from typing import Final

from extender.cells.model import Decision, MemberRequest, Place
from policy.feasibility import NEVER
from policy.submission import PodUid
from policy.wording import plain
from timemachine.model import World
from timemachine.planned.cells import build_engine
from timemachine.planned.gangs import PlayedGang
from timemachine.planned.nodes import RoomyNodes

_REASON_CHARS: Final = 400


class Possibility:
    """Asks an engine in which nothing runs, once for each kind of gang."""

    def __init__(self, world: World) -> None:
        self._engine = build_engine(world)
        self._nodes = RoomyNodes(node.name for node in world.nodes).all
        self._known: dict[MemberRequest, str] = {}

    def why_never(self, gang: PlayedGang) -> str:
        """Say why a gang can never start; empty if it can."""
        first = gang.requests()[0]
        kind = replace(first, member=PodUid(""), created=0.0, checkpoint_cost=None)
        asked = replace(kind, gang=replace(first.gang, name="any", owner=""))
        why = self._known.get(asked)
        if why is None:
            request = replace(asked, member=PodUid("any"))
            decision = self._engine.plan(request, candidate_nodes=self._nodes)
            why = self._known[asked] = _explain(decision)
        return why


def _explain(decision: Decision) -> str:
    if isinstance(decision, Place):
        return ""
    return f"{NEVER}{plain(decision.reason.text, limit=_REASON_CHARS)}"
