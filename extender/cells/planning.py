"""From a request to a decision. Changes nothing: what is tried is undone.

A member of a gang that is known takes one of its gang's open slots. For an unknown gang the whole
gang is placed; in this order: where it fits as things are; where it fits when preemptions at lower
priorities are overtaken; when lazy gangs of its VC are downgraded; when victims end.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from extender.cells import preemption, wording
from extender.cells.admission import chains_of, refusal
from extender.cells.chains import Candidates, Chains
from extender.cells.demand import Demand
from extender.cells.gangs import Gang, Slot
from extender.cells.model import (
    OPPORTUNISTIC,
    Decision,
    MemberRequest,
    Place,
    Placement,
    Preempt,
    Seat,
    Wait,
)
from extender.cells.placing import placement_of, slot_placement
from extender.cells.registry import Registry
from extender.cells.table import Table
from policy.submission import GangKey

Attempt = Callable[[MemberRequest, Demand, Candidates], Place | Preempt | None]


class Planner:
    """Decides on the present state of the table."""

    def __init__(self, table: Table, registry: Registry) -> None:
        self._table = table
        self._registry = registry
        self._chains = Chains(table)

    def plan(self, request: MemberRequest, candidates: Candidates) -> Decision:
        """Decide about one member, and with it about its gang."""
        gang = self._table.gangs.get(request.gang)
        refused = refusal(self._table, request, gang)
        if refused is not None:
            return refused
        if gang is None:
            return self._plan_gang(request, candidates)
        if gang.is_preempting:
            return self._plan_preempting(request, gang, candidates)
        return self._plan_member(request, gang, candidates)

    # -- members of known gangs

    def _plan_member(self, request: MemberRequest, gang: Gang, candidates: Candidates) -> Decision:
        own = gang.slot_of(request.member)
        if own is not None:
            return _at(request, own, candidates)
        if gang.is_being_preempted():
            return wording.being_preempted(request, preemptors(gang))
        slots = gang.open_slots(request.leaf_count)
        if slots:
            return _at(request, _offered(slots, candidates), candidates)
        taken = sum(slot.size == request.leaf_count for slot in gang.slots)
        if taken >= gang.request.gang_leaf_counts.count(request.leaf_count):
            return wording.gang_full(request)
        return self._plan_late(request, gang, candidates)

    def _plan_late(self, request: MemberRequest, gang: Gang, candidates: Candidates) -> Decision:
        """A member whose place was given up, or that an incremental gang started without."""
        sizes = (request.leaf_count,)
        # A gang that was downgraded may have lost its VC or pinned cell with the topology.
        lower = replace(request, priority=OPPORTUNISTIC, pinned=None)
        asked = request if gang.is_guaranteed else lower
        seats = self._chains.fit_in_any(asked, sizes, candidates)
        if seats is not None:
            return self._place(request, seats, candidates)
        return replace(self._why_not(asked, sizes), request=request)

    def _plan_preempting(
        self, request: MemberRequest, gang: Gang, candidates: Candidates
    ) -> Decision:
        if self._is_spoilt(gang, request, candidates):
            return self._plan_anew(request, gang, candidates)
        victims = gang.victims()
        if victims:
            return wording.preempting(request, victims=[victim.key for victim in victims])
        slots = gang.open_slots(request.leaf_count)
        if not slots:
            return wording.gang_full(request)
        return _at(request, _offered(slots, candidates), candidates)

    def _is_spoilt(self, gang: Gang, request: MemberRequest, candidates: Candidates) -> bool:
        """True if what the gang has reserved is of no use any more."""
        leaves = [leaf for slot in gang.slots for leaf in slot.leaves]
        if any(leaf.is_bad for leaf in leaves):
            return True
        if request.ignores_candidates:
            return False
        return any(leaf.node not in candidates for leaf in leaves)

    def _plan_anew(self, request: MemberRequest, gang: Gang, candidates: Candidates) -> Decision:
        with self._table.what_if():
            self._table.release(gang)
            decision = self._plan_gang(request, candidates)
        if isinstance(decision, Place | Preempt):
            return replace(decision, cancelled=(*decision.cancelled, gang.key))
        return replace(decision, cancels_own=True) if isinstance(decision, Wait) else decision

    # -- whole gangs

    def _plan_gang(self, request: MemberRequest, candidates: Candidates) -> Decision:
        sizes = tuple(sorted(request.gang_leaf_counts, reverse=True))
        whole = self._plan_sizes(request, sizes, candidates)
        if whole is not None:
            return whole
        if request.gang_min is not None and request.gang_min < len(sizes):
            part = self._plan_part(request, candidates)
            if part is not None:
                return part
        return self._why_not(request, sizes)

    def _plan_part(self, request: MemberRequest, candidates: Candidates) -> Decision | None:
        """As many members of an incremental gang as fit, but its least number."""
        others = list(request.gang_leaf_counts)
        others.remove(request.leaf_count)
        ordered = (request.leaf_count, *others)
        low, high = request.gang_min or 1, len(ordered) - 1
        best: Decision | None = None
        while low <= high:
            middle = (low + high) // 2
            sizes = tuple(sorted(ordered[:middle], reverse=True))
            found = self._chains.fit_in_any(request, sizes, candidates)
            if found is not None:
                best, low = self._place(request, found, candidates), middle + 1
            else:
                high = middle - 1
        return best

    def _plan_sizes(
        self, request: MemberRequest, sizes: tuple[int, ...], candidates: Candidates
    ) -> Decision | None:
        seats = self._chains.fit_in_any(request, sizes, candidates)
        if seats is not None:
            return self._place(request, seats, candidates)
        if request.priority == OPPORTUNISTIC or self._table.is_open:
            return None
        if not self._registry.has_candidates(request.vc, request.priority):
            return None
        demands = [
            self._chains.demand(request, chain, sizes, candidates)
            for chain in chains_of(self._table, request)
        ]
        attempts: tuple[Attempt, ...] = (self._overtake, self._downgrade, self._preempt)
        for attempt in attempts:
            tried = [attempt(request, demand, candidates) for demand in demands]
            found = [decision for decision in tried if decision is not None]
            if found:
                return min(found, key=self._cost)
        return None

    def _cost(self, decision: Place | Preempt) -> tuple[int, int, int]:
        """What a decision does to others: gangs, leaf cells, youth."""
        keys = decision.victims if isinstance(decision, Preempt) else decision.downgraded
        gangs = [self._table.gangs[key] for key in keys]
        leaves = sum(gang.leaf_count for gang in gangs)
        return len(gangs), leaves, -sum(gang.born for gang in gangs)

    def _overtake(
        self, request: MemberRequest, demand: Demand, candidates: Candidates
    ) -> Place | None:
        rivals = preemption.overtaken(self._registry, demand, request.priority)
        found = preemption.least(rivals, preemption.fit_after(self._table, demand))
        if found is None:
            return None
        place = self._place(request, found[1], candidates)
        return replace(place, cancelled=_keys(found[0]))

    def _downgrade(
        self, request: MemberRequest, demand: Demand, candidates: Candidates
    ) -> Place | None:
        lazy = preemption.downgradable(self._registry, demand, request.priority)
        found = preemption.least(lazy, preemption.fit_downgraded(self._table, demand))
        if found is None:
            return None
        place = self._place(request, found[1], candidates)
        return replace(place, downgraded=_keys(found[0]))

    def _preempt(self, request: MemberRequest, demand: Demand, _: Candidates) -> Preempt | None:
        """Victims, first with all rivals in place, then with them overtaken."""
        rivals = preemption.overtaken(self._registry, demand, request.priority)
        for cancelled in ([], rivals) if rivals else ([],):
            with self._table.what_if():
                for rival in cancelled:
                    self._table.release(rival)
                found = self._victims(request, demand)
            if found is not None:
                victims, seats = found
                return wording.preempting(
                    request,
                    victims=sorted(_keys(victims)),
                    seats=tuple(seats),
                    cancelled=_keys(cancelled),
                )
        return None

    def _victims(
        self, request: MemberRequest, demand: Demand
    ) -> tuple[list[Gang], list[Seat]] | None:
        works = preemption.fit_without(self._table, demand)
        for most in (preemption.FIRST_LOOK, None):
            endable = preemption.endable(self._registry, demand, request.priority, most=most)
            found = preemption.least(endable, works)
            if found is not None or len(endable) < preemption.FIRST_LOOK:
                return found
        return None

    # -- helpers

    def _place(
        self, request: MemberRequest, seats: Sequence[Seat], candidates: Candidates
    ) -> Place:
        """The member that asks gets a seat of its size on a node that it was offered."""
        first = next(
            seat
            for seat in seats
            if len(seat.leaves) == request.leaf_count and self._placement(seat).node in candidates
        )
        ordered = (first, *(seat for seat in seats if seat is not first))
        placements = [self._placement(seat) for seat in ordered]
        return Place(
            request=request, placement=placements[0], others=tuple(placements[1:]), seats=ordered
        )

    def _placement(self, seat: Seat) -> Placement:
        tree = self._table.trees[seat.chain]
        leaves = tuple(tree.by_address[address] for address in seat.leaves)
        claim = tree.by_address[seat.claim] if seat.claim else None
        return placement_of(leaves, claim_cell=claim)

    def _why_not(self, request: MemberRequest, sizes: tuple[int, ...]) -> Wait:
        chains = chains_of(self._table, request)
        trees = [self._table.trees[chain] for chain in chains]
        is_guaranteed = request.priority != OPPORTUNISTIC and not self._table.is_open
        if is_guaranteed:
            left, promised = self._share(request)
            if left < sum(sizes):
                return wording.vc_full(request, sizes, left=left, promised=promised)
        if any(self._chains.fits_anywhere(request, chain, sizes) for chain in chains):
            return wording.no_candidate(request)
        bad = sum(tree.root.bad for tree in trees)
        if is_guaranteed and bad:
            return wording.bad_cells(request, sizes, bad=bad)
        rooms = [self._table.idle[chain] for chain in chains]
        found = max((room.capacity(room.root, sizes[-1]) for room in rooms), default=0)
        return wording.no_room(request, sizes, found=min(found, len(sizes) - 1))

    def _share(self, request: MemberRequest) -> tuple[int, int]:
        """Leaf cells of a VC that its guaranteed gangs do not use, and all it was promised."""
        vc = self._table.vcs[request.vc]
        left = promised = 0
        for chain in chains_of(self._table, request):
            tree = self._table.trees[chain]
            if request.pinned is not None:
                ranking = vc.pinned_rankings[request.pinned]
            else:
                ranking = vc.rankings[chain]
                for level in vc.unused_levels(chain):
                    left += vc.unused(chain, level) * tree.levels[level - 1].leaf_count
            left += ranking.total
            promised += ranking.promised
        return left, promised


def _keys(gangs: Sequence[Gang]) -> tuple[GangKey, ...]:
    return tuple(gang.key for gang in gangs)


def preemptors(gang: Gang) -> list[GangKey]:
    """Who preempts a gang, by key."""
    found = {
        leaf.reserver.key
        for slot in gang.slots
        for leaf in slot.leaves
        if leaf.reserver is not None
    }
    return sorted(found)


def _offered(slots: Sequence[Slot], candidates: Candidates) -> Slot:
    offered = [slot for slot in slots if slot_placement(slot).node in candidates]
    return (offered or list(slots))[0]


def _at(request: MemberRequest, slot: Slot, candidates: Candidates) -> Decision:
    placement = slot_placement(slot)
    if placement.node in candidates:
        return Place(request=request, placement=placement)
    return wording.not_offered(request, placement.node)
