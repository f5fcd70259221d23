"""Which ranks have changed, beyond what time alone does: what the log must say of the order. Pure.

The one idea: a rank follows from the facts of a gang, from the document, and from a few numbers
that many gangs share, such as recent use. If facts of a gang have changed, that gang is told, with
all that its rank depends on. If a shared number or the document has changed, one change says so for
all gangs that it concerns, with a checksum over all ranks: so what is told does not grow with the
number of gangs that wait. A replay keeps the ranks of all gangs and must come to the same sum.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extender.queue.lines.gang_places import Rank
from extender.queue.order.facts import QueueFacts
from extender.queue.order.fair_shares import Account
from extender.queue.order.gang_order import GangOrder
from extender.queue.order.standing import Standing
from policy.submission import GangKey

_SUM_BYTES = 6
"""Of a checksum: as many as JSON keeps exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChange:
    """A gang is ranked for the first time, or by other facts than before."""

    gang: GangKey
    place: QueueFacts
    """What it is ranked by: its own facts, or after a swap those of another gang."""
    standing: Standing
    rank: float
    """The rank that counts: once behind all others, if it did not use places that it had."""
    behind: float | None
    """Until when it waited, as far as that is why it is behind others."""
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChange:
    """A number that many gangs share has changed, or the document, and all are ranked by it."""

    accounts: tuple[Account, ...]
    """Users and groups with other recent use."""
    vcs: tuple[str, ...]
    """VCs of another size, or with another use."""
    is_all: bool
    """Whether all gangs were ranked anew: the document or the classes have changed."""
    gangs: int
    """How many gangs are ranked."""
    checksum: int
    """Over the ranks of all of them."""
    now: float


class RankSum:
    """A checksum over the ranks of gangs, whatever their order."""

    def __init__(self) -> None:
        self._of: dict[GangKey, tuple[Rank, int]] = {}
        self.value = 0

    def __len__(self) -> int:
        return len(self._of)

    def put(self, gang: GangKey, rank: Rank) -> None:
        """Note the rank of a gang."""
        known = self._of.get(gang)
        if known is not None:
            if known[0] == rank:
                return
            self.value ^= known[1]
        text = repr((gang.namespace, gang.name, gang.owner, *rank[:3], str(rank[3])))
        digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=_SUM_BYTES).digest()
        self._of[gang] = rank, int.from_bytes(digest)
        self.value ^= self._of[gang][1]

    def remove(self, gang: GangKey) -> None:
        """Leave a gang out."""
        self.value ^= self._of.pop(gang, (None, 0))[1]


class RankChanges:
    """Tells of changes; the callbacks run at once, before anything else changes."""

    def __init__(self, order: GangOrder) -> None:
        self._order = order
        self._told: dict[GangKey, tuple[object, ...]] = {}
        """What was told of each gang."""
        self._sum = RankSum()
        self._passes = 0
        """Parts of the order that are being ranked anew at this moment, in steps."""
        self._version = order.version
        """The version of the document by which all gangs are ranked."""
        self._accounts: dict[Account, None] = {}
        self._vcs: dict[str, None] = {}
        self._is_all = False
        self.on_rank: Callable[[RankChange], None] = lambda _: None
        self.on_leave: Callable[[GangKey], None] = lambda _: None
        """Called with gangs that are not ranked any more: they start, or have ended."""
        self.on_order: Callable[[OrderChange], None] = lambda _: None

    def note(
        self, gang: GangKey, place: QueueFacts, standing: Standing, *, behind: float, now: float
    ) -> Rank:
        """Note by what a gang is ranked, and return its rank."""
        is_behind = behind > standing.rank
        number = behind if is_behind else standing.rank
        rank: Rank = float(standing.level), number, standing.asked, place.gang
        self._sum.put(gang, rank)
        told = self._facts(place, standing, behind if is_behind else None)
        if self._told.get(gang) != told:
            self._told[gang] = told
            self.on_rank(
                RankChange(
                    gang=gang,
                    place=place,
                    standing=standing,
                    rank=number,
                    behind=behind if is_behind else None,
                    now=now,
                )
            )
        return rank

    def _facts(
        self, place: QueueFacts, standing: Standing, behind: float | None
    ) -> tuple[object, ...]:
        """Return what is told of a gang again if it has changed."""
        by_run_time = self._order.uses_run_times
        return (
            place.gang,
            place.user,
            place.group,
            place.vc,
            place.class_name,
            place.priority,
            place.leaf_cells,
            place.leaf_type,
            place.pinned,
            place.asked,
            place.start_by,
            (place.run_time.median, place.run_time.limit) if by_run_time else None,
            standing.level_name,
            standing.own_level_name,
            standing.next_promotion,
            behind,
        )

    def forget(self, gang: GangKey) -> None:
        """A gang is not ranked any more."""
        self._sum.remove(gang)
        if self._told.pop(gang, None) is not None:
            self.on_leave(gang)

    # -- many gangs

    def begin(self) -> None:
        """Gangs are ranked anew from now on, in steps."""
        self._passes += 1

    def end(
        self,
        *,
        now: float,
        accounts: Iterable[Account] = (),
        vcs: Iterable[str] = (),
        by_version: int | None = None,
    ) -> None:
        """All gangs of these accounts and VCs are ranked anew; all gangs, by a document."""
        self._passes -= 1
        self._accounts |= dict.fromkeys(accounts)
        self._vcs |= dict.fromkeys(vcs)
        if by_version == self._order.version:
            self._version, self._is_all = self._order.version, True
        # In between, or with another document, some ranks are new and others are not. What is left
        # out then is told with the end of the last pass.
        has_news = self._is_all or self._accounts or self._vcs
        if has_news and not self._passes and self._version == self._order.version:
            self._tell(now)

    def _tell(self, now: float) -> None:
        accounts, vcs, is_all = tuple(self._accounts), tuple(self._vcs), self._is_all
        self._accounts, self._vcs, self._is_all = {}, {}, False
        if self._told:
            self.on_order(
                OrderChange(
                    accounts=accounts,
                    vcs=vcs,
                    is_all=is_all,
                    gangs=len(self._sum),
                    checksum=self._sum.value,
                    now=now,
                )
            )
