"""What a new topology, or other priorities, did to each gang.

No running pod is ended. A gang is

- *kept* if its leaf cells exist and its VC still has the cells that it counts against;
- *downgraded* to opportunistic if its leaf cells exist, but the promise is gone or would break
  another one;
- *ignored* if some of its leaf cells do not exist any more: these are not counted;
- *trimmed* if it lost slots without a bound member (leases, slots that wait for a replacement,
  reservations), and *forgotten* if it had no others. Such a slot keeps exactly its leaves or is
  given up;
- *promoted* if it had been downgraded and unused cells of its VC cover its leaves now.

Gangs of high priority come first, then old ones: they are the last to lose a share that shrank.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from extender.cells.model import OPPORTUNISTIC
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang, slot_placement
from policy.submission import GangKey, PodUid


class Effect(StrEnum):
    """What a new topology did to a gang."""

    KEPT = "kept"
    DOWNGRADED = "downgraded"
    PROMOTED = "promoted"
    IGNORED = "ignored"
    TRIMMED = "trimmed"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangEffect:
    """What happened to one gang."""

    gang: GangKey
    effect: Effect
    reason: str


def ranked(gang: PlacedGang, priorities: Mapping[GangKey, int]) -> PlacedGang:
    """A copy of a gang with its new priority.

    An opportunistic gang that gets a guaranteed priority counts as downgraded: it is promoted if
    unused cells of its VC cover its leaves.
    """
    before, now = gang.request.priority, priorities.get(gang.key, gang.request.priority)
    downgraded_by = gang.key if before == OPPORTUNISTIC < now else gang.downgraded_by
    return replace(
        gang,
        request=replace(gang.request, priority=now),
        downgraded_by=None if now == OPPORTUNISTIC else downgraded_by,
    )


def replay_order(gangs: Sequence[PlacedGang]) -> list[PlacedGang]:
    """The order in which gangs claim their cells again."""
    return sorted(gangs, key=lambda gang: (-gang.priority, gang.sequence_number))


def effects(before: Sequence[PlacedGang], after: dict[GangKey, PlacedGang]) -> Iterator[GangEffect]:
    """Compare gangs before and after, by key."""
    for gang in sorted(before, key=lambda gang: gang.key):
        yield effect_on(gang, after.get(gang.key))


def effect_on(before: PlacedGang, after: PlacedGang | None) -> GangEffect:
    """Compare a gang before and after."""
    if after is None:
        reason = _why_forgotten(before)
        return GangEffect(gang=before.key, effect=Effect.FORGOTTEN, reason=reason)
    lost = len(before.slots) - len(after.slots)
    effect, reason = _standing(before, after)
    if lost and effect is Effect.KEPT:
        effect, reason = Effect.TRIMMED, f"gang {before.key} keeps its running members"
    if lost:
        reason += f"; unused places given up: {lost}; their members are planned again"
    return GangEffect(gang=before.key, effect=effect, reason=reason)


def _standing(before: PlacedGang, after: PlacedGang) -> tuple[Effect, str]:
    vc, priority = before.request.vc, before.request.priority
    missing = sum(_is_missing(slot) for slot in after.slots if slot.member)
    if missing:
        return Effect.IGNORED, (
            f"{missing} of {len(after.slots)} members of gang {before.key} use leaf cells "
            "that the new topology does not have; they keep running and are not counted"
        )
    if after.downgraded_by is not None and before.downgraded_by is None:
        return Effect.DOWNGRADED, (
            f"VC {vc} has no cells left for gang {before.key} at priority {priority}; "
            "the gang keeps running as opportunistic"
        )
    if before.downgraded_by is not None and after.downgraded_by is None:
        return Effect.PROMOTED, (
            f"VC {vc} has cells for gang {before.key} again; the gang is guaranteed at priority "
            f"{priority}"
        )
    return Effect.KEPT, f"gang {before.key} is unchanged"


def _why_forgotten(gang: PlacedGang) -> str:
    if gang.is_preempting:
        return (
            f"the preemption of gang {gang.key} is cancelled: the cells that it reserved do not "
            f"exist, or are not available to VC {gang.request.vc}, any more; it is planned again"
        )
    return (
        f"gang {gang.key} has no running member, and the cells that it leased do not exist, or are "
        f"not available to VC {gang.request.vc}, any more; it is planned again"
    )


def _is_missing(slot: MemberSlot) -> bool:
    return not slot.leaves or len(slot.leaves) + slot.missing_leaves < slot.size


# -- all gangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What a change of the topology or of priorities did."""

    effects: list[GangEffect]
    """The effect on each gang that was taken over, by key."""
    moved: list[PodUid]
    """Members that have another placement now."""
    lost: list[PodUid]
    """Members that have no place any more."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One gang before and after a change."""

    effect: GangEffect
    moved: tuple[PodUid, ...]
    lost: tuple[PodUid, ...]


def compared(before: PlacedGang, after: PlacedGang | None) -> Comparison:
    """Compare a gang, and the places of its members, before and after a change."""
    now = {slot.member: slot for slot in after.slots} if after else {}
    moved, lost = list[PodUid](), list[PodUid]()
    for slot in before.slots:
        if slot.member is None:
            continue
        other = now.get(slot.member)
        if other is None:
            lost.append(slot.member)
        elif slot_placement(other) != slot_placement(slot):
            moved.append(slot.member)
    return Comparison(effect_on(before, after), tuple(moved), tuple(lost))


def summed(found: Iterable[Comparison]) -> Changed:
    """All comparisons together."""
    gangs = list(found)
    return Changed(
        effects=[one.effect for one in gangs],
        moved=[uid for one in gangs for uid in one.moved],
        lost=[uid for one in gangs for uid in one.lost],
    )
