"""Places that are taken back from gangs: refused by kube-scheduler, lost, or not used in time.

A gang of which no member runs loses all its places at once: a part of a gang is of no use.
"""

from collections.abc import Sequence

from extender.queue.held_bindings import GivenUp, HeldBindings
from extender.queue.in_flight import InFlightPods
from extender.queue.member_places import has_begun
from extender.queue.ports import Cells
from extender.queue.queued_gang import QueuedGang
from extender.queue.refused_places import RefusedPlaces
from extender.queue.seen_gangs import SeenGangs
from extender.queue.waiting_gangs import WaitingGangs
from policy.submission import GangKey, NodeName, PodUid


class Withdrawals:
    """Takes places back, and answers the bindings that are held for them."""

    def __init__(
        self,
        cells: Cells,
        *,
        seen: SeenGangs,
        waiting: WaitingGangs,
        in_flight: InFlightPods,
        refused: RefusedPlaces,
        held: HeldBindings,
    ) -> None:
        self._cells = cells
        self._seen = seen
        self._waiting = waiting
        self._in_flight = in_flight
        self._refused = refused
        self._held = held

    def withdraw(self, *uids: PodUid) -> None:
        """Give back the places of some pods and what is reserved for them."""
        for uid in uids:
            self._cells.forget_member(uid)
            self._in_flight.leave(uid)
            self._refused.forget(uid)

    def withdraw_all(self, gang: QueuedGang) -> None:
        """Give back all that a gang has; a gang that is not complete yet has nothing."""
        if self._cells.known_sizes(gang.key) is not None:
            self.withdraw(*gang.pods)
            return
        for uid in gang.pods:
            self._in_flight.leave(uid)
            self._refused.forget(uid)

    def expire(self, gangs: Sequence[GangKey]) -> None:
        """The leases of these gangs expired: each gang now waits behind all gangs of its rank.

        A gang may lack something else than leaf cells. At the head of the queue it would hold
        leaf cells again and again without using them.
        """
        for key in gangs:
            gang = self._seen.find(key)
            if gang is not None and not self._in_flight.is_held_back(key):
                self._seen.send_back(gang)
        self.unseat(gangs)

    def unseat(self, gangs: Sequence[GangKey]) -> None:
        """Members of these gangs that are not bound have lost their places."""
        for key in gangs:
            gang = self._seen.find(key)
            for uid in gang.pods if gang is not None else ():
                self._in_flight.leave(uid)
            self._seen.note_change(key)
            self._waiting.wake()

    def lose_node(self, node: NodeName) -> None:
        """A node left or cannot be used for now: its unbound pods give up their places."""
        for uid in self._seen.pods:
            placement = None if self._cells.is_bound(uid) else self._cells.placement(uid)
            if placement is not None and placement.node == node:
                self._refused.lose_node(uid)

    def handle_due(self, now: float) -> None:
        """Take back the places that stay refused, were lost, or are not used in time."""
        for uid, is_refused in self._refused.take_due(now).items():
            self._give_up_place(uid, is_refused=is_refused, now=now)
        for key, why in self._held.take_overdue(now).items():
            self._give_up_gang(self._seen[key], why, now=now)

    def _give_up_place(self, uid: PodUid, *, is_refused: bool, now: float) -> None:
        """Withdraw a place that cannot be used; the whole gang's places, if no member runs."""
        gang = self._seen.find_of(uid)
        if gang is None or self._cells.is_bound(uid):
            return
        why = GivenUp.REFUSED if is_refused else GivenUp.PLACE_LOST
        placement = self._cells.placement(uid)
        if gang.pods[uid].is_helper and self._held.arrived(gang.key):
            self._give_up_gang(gang, why, now=now)
        if placement is None:
            return
        if is_refused:  # a node that was lost may be used once it is back
            gang.refuse_node(placement.node, member=uid, now=now)
        self.withdraw(*([uid] if has_begun(gang, self._cells) else gang.pods))
        self._held.give_up(gang.key, why)
        self._seen.note_change(gang.key)

    def _give_up_gang(self, gang: QueuedGang, why: GivenUp, *, now: float) -> None:
        """Take back all places of a gang of which members did not arrive to be bound.

        The nodes of the missing members are avoided. The gang pauses instead, because it would get
        the same places again, if only helpers are missing, which have no nodes, or if
        kube-scheduler had no time for all members.
        """
        arrived = self._held.arrived(gang.key)
        missing = [uid for uid in gang.pods if uid not in arrived]
        places = [(uid, self._cells.placement(uid)) for uid in missing]
        nodes = {uid: place.node for uid, place in places if place is not None}
        if why is GivenUp.OVERDUE or not nodes:
            gang.pause(now=now)
        else:
            for uid, node in nodes.items():
                gang.refuse_node(node, member=uid, now=now)
        self.withdraw(*gang.pods)
        self._held.give_up(gang.key, why)
        self._seen.send_back(gang)
        self._seen.note_change(gang.key)

    def reopen_node(self, node: NodeName) -> None:
        """A node has changed: gangs for which it was refused may use it now."""
        for gang in self._seen:
            if gang.reopen_node(node):
                self._seen.note_change(gang.key)
                self._waiting.wake()

    def unseat_unbound(self, victims: Sequence[GangKey]) -> None:
        """Withdraw the places of victims' members that are not bound: they need not be ended."""
        for victim in victims:
            self._seen.note_change(victim)
            for uid in sorted(self._cells.members_of(victim)):
                if not self._cells.is_bound(uid):
                    self.withdraw(uid)
