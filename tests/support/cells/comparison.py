"""Decisions compared with those that trying everything gives, on small clusters."""

from collections.abc import Sequence
from itertools import combinations

from extender.cells.engine import Engine
from extender.cells.model import Decision, MemberRequest, Place, Preempt, ReasonCode, Wait
from extender.cells.state.placed_gangs import PlacedGang
from extender.cells.state.tree import Cell
from policy.submission import GangKey, NodeName
from policy.topology import Topology
from tests.support.cells.brute_force import Question, fits, least_of

MOST_ENDABLE = 9
"""Candidates for victims of which all sets are tried."""


def damage(gangs: Sequence[PlacedGang]) -> tuple[int, int, int, float, int]:
    """Fewest gangs, fewest leaf cells, least work lost, the youngest; who is ending is free."""
    gangs = [gang for gang in gangs if not gang.is_ending]
    return (
        len(gangs),
        sum(gang.leaf_count for gang in gangs),
        sum((gang.request.checkpoint_cost or 0) * gang.leaf_count for gang in gangs),
        -sum(gang.request.created for gang in gangs),
        -sum(gang.sequence_number for gang in gangs),
    )


class Comparison:
    """Asks what an engine was asked, by brute force."""

    def __init__(self, engine: Engine, topology: Topology) -> None:
        self._table = engine._table
        self._chains = topology.chains

    def check(
        self, request: MemberRequest, decision: Decision, candidates: frozenset[NodeName]
    ) -> None:
        """The kind of decision is the one that trying everything gives."""
        request = least_of(request)
        if self._fits(request, candidates, lambda gang: False):
            assert isinstance(decision, Place), decision
            assert not decision.cancelled
            assert not decision.downgraded
            return
        could = request.priority >= 0 and self._fits(
            request, candidates, lambda gang: self._may_end(request, gang)
        )
        if not could and isinstance(decision, Place):
            # A gang that allows it is downgraded, however short it has run.
            assert any(self._table.gangs[key].minimum_run for key in decision.downgraded), decision
        elif not could:
            assert isinstance(decision, Wait), decision
            self._check_wait(request, decision, candidates)
        else:
            assert isinstance(decision, Place | Preempt), decision
        if isinstance(decision, Preempt):
            self._check_victims(request, decision, candidates)

    def _check_wait(
        self, request: MemberRequest, decision: Wait, candidates: frozenset[NodeName]
    ) -> None:
        """It waits for minimum runs if it could preempt without them, and only then."""
        by_right = request.priority >= 0 and self._fits(
            request, candidates, lambda gang: self._may_end(request, gang, spares=False)
        )
        assert (decision.reason.code is ReasonCode.MINIMUM_RUN) == by_right, decision

    def _check_victims(
        self, request: MemberRequest, decision: Preempt, candidates: frozenset[NodeName]
    ) -> None:
        """The victims are enough, and none can be spared."""
        gangs = self._table.gangs
        # Who is overtaken keeps what it holds.
        overtaken = frozenset(decision.cancelled)
        chosen = {*decision.victims, *(key for key in overtaken if gangs[key].is_preempting)}
        assert decision.victims
        assert self._fits(request, candidates, lambda gang: gang.key in chosen, overtaken)
        for victim in decision.victims:
            rest = chosen - {victim}
            assert not self._fits(
                request, candidates, lambda gang, r=rest: gang.key in r, overtaken
            )
        endable = [
            gang
            for gang in gangs.values()
            if not gang.is_preempting and self._may_end(request, gang)
        ]
        if decision.cancelled or len(endable) > MOST_ENDABLE:
            return
        chosen_damage = damage([gangs[victim] for victim in decision.victims])
        leaving = [gang for gang in endable if gang.is_ending]
        healthy = [gang for gang in endable if not gang.is_ending]
        # Those that are ending cost nothing, and without them it works no worse.
        for count in range(len(decision.victims) + 1):
            for others in combinations(healthy, count):
                keys = {gang.key for gang in (*leaving, *others)}
                if damage(others) < chosen_damage:
                    assert not self._fits(request, candidates, lambda g, k=keys: g.key in k), keys

    def _may_end(self, request: MemberRequest, gang: PlacedGang, *, spares: bool = True) -> bool:
        if gang.is_foreign:
            return all(slot.is_reclaimable for slot in gang.slots if not slot.is_reserved)
        if not gang.is_guaranteed:
            return True
        is_young = gang.minimum_run > 0 and not gang.is_ending and not gang.is_preempting
        is_lower = gang.request.vc == request.vc and gang.priority < request.priority
        return is_lower and not (is_young and spares)

    def _fits(
        self,
        request: MemberRequest,
        candidates: frozenset[NodeName],
        gone: object,
        overtaken: frozenset[GangKey] = frozenset(),
    ) -> bool:
        away = frozenset(g.key for g in self._table.gangs.values() if gone(g))  # type: ignore[operator]

        def usable(leaf: Cell) -> bool:
            holder, reserver = leaf.holder, leaf.reserver
            is_reserved = reserver is not None and reserver.key not in away | overtaken
            return (holder is None or holder.key in away) and not is_reserved

        rest = list(request.gang_leaf_counts)
        rest.remove(request.leaf_count)
        is_guaranteed = request.priority >= 0
        return any(
            fits(
                self._table,
                Question(
                    chain=chain,
                    vc=request.vc if is_guaranteed else None,
                    pinned=request.pinned,
                    sizes=(request.leaf_count, *sorted(rest, reverse=True)),
                    first_nodes=candidates,
                    nodes=None if request.ignores_candidates else candidates,
                    usable=usable,
                    gone=away,
                ),
            )
            for chain in self._chains
        )
