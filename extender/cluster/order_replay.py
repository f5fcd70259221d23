"""The ranks of waiting gangs decided again from the log: the same facts, by the same document.

What the log says of recent use and of VCs is taken from it; the ranks are computed anew.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from extender.cluster.order_rows import decode_facts, decode_size, encode_standing, encode_sum
from extender.cluster.rows import Row
from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import GangOrder, VcSize
from extender.queue.order.rank_changes import RankSum
from extender.queue.order.standing import Standing
from policy.parser import DocumentKind
from policy.policy import restore
from policy.queues.queues import Queues
from policy.submission import GangKey
from state.log.records import DecisionRecord

_KINDS = (DocumentKind.CLASSES, DocumentKind.QUEUES)


def order_content(content: str) -> str:
    """Return the part of a policy's content by which gangs are ordered."""
    documents = json.loads(content)
    needed = {kind: documents[kind] for kind in _KINDS if kind in documents}
    return json.dumps(needed, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Ranked:
    place: QueueFacts
    behind: float | None
    now: float
    """When it was ranked, as far as its level depends on the time."""


class OrderReplay:
    """The ranks of all gangs that wait, by the rows about them."""

    def __init__(self) -> None:
        self._order = GangOrder()
        self._vcs: dict[str, VcSize] = {}
        self._leaf_cells = 0
        self._ranked: dict[GangKey, _Ranked] = {}
        self._of_account: dict[Account, dict[GangKey, None]] = {}
        self._sum = RankSum()

    @property
    def queues(self) -> Queues:
        """The Queues document in force."""
        return self._order.queues

    def use_policy(self, content: str) -> None:
        """Another document is in force: `content` is what `order_content` returned."""
        policy = restore(order_content(content))
        self._order.configure(policy.queues, policy.classes)

    def decide(self, record: DecisionRecord) -> Row | None:
        """Take in a row; return what is decided again, if it has a decision."""
        match record.outcome:
            case "ranked":
                return self._rank(record.inputs)
            case "reordered":
                return self._reorder(record.inputs)
            case "left":
                self._forget(GangKey(*record.inputs["gang"]))
        return None

    # -- one gang

    def _rank(self, inputs: Mapping[str, Any]) -> Row:
        gang = GangKey(*inputs["gang"])
        place = decode_facts(GangKey(*inputs.get("placeOf", inputs["gang"])), inputs["facts"])
        if "share" in inputs:
            self._order.shares.recall(_account(place), inputs["share"])
        if "vc" in inputs:
            self._resize({place.vc: inputs["vc"]}, leaf_cells=inputs["leafCells"])
        known = _Ranked(place, inputs.get("behind"), inputs["now"])
        self._forget(gang)
        self._ranked[gang] = known
        self._of_account.setdefault(_account(place), {})[gang] = None
        standing = self._put(gang, known)
        return encode_standing(standing, _rank(standing, known))

    def _put(self, gang: GangKey, known: _Ranked) -> Standing:
        standing = self._order.standing(known.place, now=known.now)
        self._sum.put(gang, _key(standing, known))
        return standing

    def _forget(self, gang: GangKey) -> None:
        known = self._ranked.pop(gang, None)
        if known is not None:
            self._sum.remove(gang)
            del self._of_account[_account(known.place)][gang]

    # -- many gangs

    def _reorder(self, inputs: Mapping[str, Any]) -> Row:
        accounts = [((group, user), factor) for group, user, factor in inputs.get("shares", ())]
        for account, factor in accounts:
            self._order.shares.recall(account, factor)
        vcs = inputs.get("vcs", {})
        self._resize(vcs, leaf_cells=inputs["leafCells"])
        if inputs.get("all"):
            for gang, known in list(self._ranked.items()):
                self._ranked[gang] = _Ranked(known.place, known.behind, inputs["now"])
            self._rank_again(self._ranked)
        else:
            of_accounts = [gang for one, _ in accounts for gang in self._of_account.get(one, ())]
            in_vcs = [gang for gang, known in self._ranked.items() if known.place.vc in vcs]
            self._rank_again(dict.fromkeys([*of_accounts, *(in_vcs if vcs else ())]))
        return encode_sum(len(self._sum), self._sum.value)

    def _rank_again(self, gangs: Iterable[GangKey]) -> None:
        for gang in gangs:
            self._put(gang, self._ranked[gang])

    def _resize(self, sizes: Mapping[str, list[int]], *, leaf_cells: int) -> None:
        changed = {vc: decode_size(size) for vc, size in sizes.items()}
        if leaf_cells != self._leaf_cells or any(
            self._vcs.get(vc) != size for vc, size in changed.items()
        ):
            self._vcs |= changed
            self._leaf_cells = leaf_cells
            self._order.observe_vcs(self._vcs, leaf_cells=leaf_cells)


def _account(place: QueueFacts) -> Account:
    return place.group or "", place.user


def _rank(standing: Standing, known: _Ranked) -> float:
    return standing.rank if known.behind is None else max(standing.rank, known.behind)


def _key(standing: Standing, known: _Ranked) -> Rank:
    return float(standing.level), _rank(standing, known), standing.asked, known.place.gang
