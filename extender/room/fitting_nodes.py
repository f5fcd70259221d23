"""The nodes that fit each need, kept up to date as nodes and pods change.

A need is what a member asks of its node: a wish (selector, affinity, tolerations) and resources.
Needs are few, nodes and pods are many. So the nodes of each need are remembered, and a change costs
one check per need that is remembered, however large the cluster is.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from extender.room.cluster_room import ClusterRoom
from extender.room.node_room import Lack
from policy.pod_resources import NodePod, PodResources, Shortage
from policy.submission import NodeName, PodUid

_MOST_NEEDS: Final = 128
"""More different needs than wait at a time; further ones cost time, not memory."""
_NOT_THERE: Final = object()


class Wish(Protocol):
    """Which nodes a pod may use, whatever room they have. Hashable."""

    def suits(self, node: Any) -> bool:  # noqa: ANN401 - the traits that the feed reports
        """Whether a node with these traits may be used."""

    def __hash__(self) -> int:
        """Equal wishes suit the same nodes."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a member asks of its node, beside leaf cells."""

    wish: Wish
    resources: PodResources


@dataclass(slots=True, eq=False)
class _Fit:
    """The nodes that suit a wish, divided by their room for the resources."""

    roomy: dict[NodeName, None] = field(default_factory=dict)
    """They have room now."""
    short: dict[NodeName, Lack] = field(default_factory=dict)
    """They lack something now."""
    stuck: dict[NodeName, None] = field(default_factory=dict)
    """Those of them that would lack something even if all pods that may be ended had ended."""
    missed: dict[NodeName, None] = field(default_factory=dict)
    """Nodes that have room for one member and not for as many as were planned there."""


class FittingNodes:
    """Implements `extender.queue.ports.Nodes`."""

    def __init__(self, room: ClusterRoom) -> None:
        self.room = room
        self._traits: dict[NodeName, Any] = {}
        self._fits: OrderedDict[Need, _Fit] = OrderedDict()
        self._grown: dict[Need, None] = {}
        self._dropped: dict[Need, None] = {}
        """Needs that are not remembered any more: any change may be of use to them."""

    # -- reports

    def upsert(self, name: NodeName, traits: object, capacity: Mapping[str, int]) -> bool:
        """A node joined or changed; True if pods may be affected."""
        has_other_room = self.room.node(name).capacity != capacity
        self.room.put_node(name, capacity)
        if self._traits.get(name) == traits:
            return has_other_room
        self._traits[name] = traits
        for need in self._fits:
            self._place(need, name)
        return True

    def remove(self, name: NodeName) -> None:
        """A node left."""
        self._traits.pop(name, None)
        self.room.drop_node(name)
        for fit in self._fits.values():
            _take_out(fit, name)

    @contextmanager
    def assuming(self, pods: Mapping[PodUid, NodePod]) -> Iterator[None]:
        """Know pods for a moment, while questions about them are answered; no trace is left."""
        self._catch_up()
        before = {need: dict(fit.missed) for need, fit in self._fits.items()}
        with self.room.assuming(pods):
            try:
                yield
            finally:
                for need, fit in list(self._fits.items()):
                    if need in before:
                        fit.missed = before[need]
                    else:
                        del self._fits[need]

    # -- questions

    def fitting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName] = ()
    ) -> Collection[NodeName]:
        """Return the nodes that have room for any one of these needs; all nodes without needs."""
        fits = self._all_fits(needs)
        if len(fits) == 1 and not without:
            return fits[0].roomy
        return _common([fit.roomy for fit in fits] or [self._traits], without)

    def freeable(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName] = ()
    ) -> Collection[NodeName]:
        """Return the nodes that would have room if all pods that may be ended had ended."""
        fits = self._all_fits(needs)
        stuck = {name: None for fit in fits for name in fit.stuck}
        return _common(
            [_suiting(fit) for fit in fits] or [self._traits], {**stuck, **_dict(without)}
        )

    def suiting(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName] = ()
    ) -> Collection[NodeName]:
        """Return the nodes that suit these needs, whatever room they have."""
        return _common([_suiting(f) for f in self._all_fits(needs)] or [self._traits], without)

    def closed_to(self, members: Iterable[PodUid]) -> Collection[NodeName]:
        """Return the nodes with pods whose anti-affinity keeps one of these members off."""
        return self.room.closed_to(members)

    def crowded(
        self,
        seats: Iterable[tuple[PodUid, NodeName]],
        *,
        needs: Sequence[Hashable],
        ending: Collection[PodUid] = (),
    ) -> dict[NodeName, int]:
        """Return the nodes that lack room for all members that are to be there together.

        With each node comes how many of them have room there, the first ones.
        """
        by_node: dict[NodeName, list[PodUid]] = {}
        for uid, node in seats:
            by_node.setdefault(node, []).append(uid)
        counts = {
            node: self.room.count_fitting(node, members, ending=ending)
            for node, members in by_node.items()
        }
        found = {node: count for node, count in counts.items() if count < len(by_node[node])}
        for fit in self._all_fits(needs) if found else ():
            fit.missed.update(dict.fromkeys(found))
        return found

    def shortage(
        self, needs: Sequence[Hashable], *, without: Collection[NodeName] = ()
    ) -> Shortage | None:
        """Say what most nodes lack; None if none of them lacks anything."""
        fits = self._all_fits(needs)
        short = {
            name: lack
            for fit in fits
            for name, lack in sorted(fit.short.items())
            if name not in without
        }
        if not short:
            return self._crowding(fits, without)
        counts = Counter(lack.resource for lack in short.values())
        most = min(counts, key=lambda name: (-counts[name], name))
        node = min(name for name, lack in short.items() if lack.resource == most)
        lack = short[node]
        return Shortage(
            resource=most,
            asked=lack.asked,
            short=len(short),
            nodes=len(self.suiting(needs, without=without)),
            node=node,
            free=lack.free,
            total=lack.total,
        )

    def _crowding(self, fits: Sequence[_Fit], without: Collection[NodeName]) -> Shortage | None:
        missed = sorted({name for fit in fits for name in fit.missed if name not in without})
        if not missed:
            return None
        return Shortage(
            resource="", asked=0, short=len(missed), nodes=len(fits[0].roomy), node=missed[0]
        )

    def take_grown(self) -> Collection[Hashable]:
        """Return the needs that fit more nodes, or nodes with more room, than they did before."""
        self._catch_up()
        grown, self._grown = self._grown, {}
        return dict.fromkeys((*self._fits, *grown)) if self.room.take_opened() else grown

    # -- needs and nodes

    def _all_fits(self, needs: Sequence[Hashable]) -> list[_Fit]:
        self._catch_up()
        return [self._fit(need) for need in needs if isinstance(need, Need)]

    def _fit(self, need: Need) -> _Fit:
        if need in self._fits:
            self._fits.move_to_end(need)
            return self._fits[need]
        fit = self._fits[need] = _Fit()
        for name in self._traits:
            self._place(need, name)
        self._dropped.pop(need, None)
        if len(self._fits) > _MOST_NEEDS:
            oldest, _ = self._fits.popitem(last=False)
            self._dropped[oldest] = None
        return fit

    def _catch_up(self) -> None:
        """Look again at the nodes whose room has changed."""
        changed = self.room.take_changed()
        if changed and self._dropped:
            self._grown.update(self._dropped)
            self._dropped.clear()
        for name in changed:
            for need, fit in self._fits.items():
                if name in fit.roomy or name in fit.short:
                    self._weigh(need, fit, name)

    def _place(self, need: Need, name: NodeName) -> None:
        """Look again at a node whose traits have changed."""
        fit = self._fits[need]
        if need.wish.suits(self._traits[name]):
            self._weigh(need, fit, name)
        else:
            _take_out(fit, name)

    def _weigh(self, need: Need, fit: _Fit, name: NodeName) -> None:
        """Look again at the room of a node that suits a need."""
        room, wanted = self.room.node(name), (need.resources,)
        was_missed = fit.missed.pop(name, _NOT_THERE) is not _NOT_THERE
        lack = room.lack(wanted)
        if lack is None:
            if was_missed or name not in fit.roomy:
                self._grown[need] = None
            fit.roomy[name] = None
            fit.short.pop(name, None)
            fit.stuck.pop(name, None)
            return
        fit.roomy.pop(name, None)
        fit.short[name] = lack
        if room.endable and room.lack(wanted, ending=room.endable) is None:
            if fit.stuck.pop(name, _NOT_THERE) is not _NOT_THERE:
                self._grown[need] = None
        else:
            fit.stuck[name] = None


def _take_out(fit: _Fit, name: NodeName) -> None:
    for part in (fit.roomy, fit.short, fit.stuck, fit.missed):
        part.pop(name, None)


def _suiting(fit: _Fit) -> Collection[NodeName]:
    return {**fit.roomy, **_dict(fit.short)} if fit.short else fit.roomy


def _dict(names: Iterable[NodeName]) -> dict[NodeName, None]:
    return dict.fromkeys(names)


def _common(
    sets: Sequence[Collection[NodeName]], without: Collection[NodeName]
) -> Collection[NodeName]:
    """Return the nodes that are in all sets, except some, in the order of the first set."""
    first, *others = sets
    return {
        name: None
        for name in first
        if name not in without and all(name in other for other in others)
    }
