"""A new topology under running gangs: what becomes of each, before it is done and when it is.

Nothing that runs is ended. A gang is *kept* if its leaf cells exist and its VC can still be given
the cells that it counts on; *downgraded* to opportunistic if they exist but the promise is gone or
would break another; *ignored*, as far as its leaf cells do not exist any more. Gangs of high
priority come first, then old ones: they are the last to lose a share that shrank. What a gang only
holds (leases, places that wait for replacements, reservations of a preemption) it keeps if it can
have exactly that; else it is *trimmed*, or *forgotten* if nothing is left. Last of all, a gang that
was downgraded before is *promoted* if there are unused cells of its VC around it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from extender.cells.model import OPPORTUNISTIC
from extender.cells.state.placed_gangs import MemberSlot, PlacedGang
from policy.submission import GangKey, PodUid, VcName


class Effect(StrEnum):
    """What a new topology means for a gang."""

    KEPT = "kept"
    DOWNGRADED = "downgraded"
    PROMOTED = "promoted"
    IGNORED = "ignored"
    TRIMMED = "trimmed"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangEffect:
    """What becomes of one gang."""

    gang: GangKey
    vc: VcName
    effect: Effect
    reason: str
    missing: tuple[PodUid, ...] = ()
    """Members whose leaf cells the new topology does not have."""
    unplaced: tuple[PodUid, ...] = ()
    """Members that were not bound, or only asked, and have no place or reservation any more."""


NO_CHANGE: Final[Mapping[GangKey, int]] = MappingProxyType({})
"""Every gang keeps its priority."""


def ranked(gang: PlacedGang, priorities: Mapping[GangKey, int]) -> PlacedGang:
    """A gang at the priority that it has from now on.

    One that borrowed its cells and need not any more is like one that was downgraded: it is
    promoted if there are unused cells of its VC around it.
    """
    before, now = gang.request.priority, priorities.get(gang.key, gang.request.priority)
    downgraded_by = gang.key if before == OPPORTUNISTIC < now else gang.downgraded_by
    return replace(
        gang,
        request=replace(gang.request, priority=now),
        downgraded_by=None if now == OPPORTUNISTIC else downgraded_by,
    )


def replay_order(gangs: Sequence[PlacedGang]) -> list[PlacedGang]:
    """In which order gangs claim their cells anew."""
    return sorted(gangs, key=lambda gang: (-gang.priority, gang.sequence_number))


def effects(before: Sequence[PlacedGang], after: dict[GangKey, PlacedGang]) -> Iterator[GangEffect]:
    """Compare gangs before and after, by key."""
    for gang in sorted(before, key=lambda gang: gang.key):
        yield _effect(gang, after.get(gang.key))


def _effect(before: PlacedGang, after: PlacedGang | None) -> GangEffect:
    vc, unplaced = before.request.vc, _unplaced(before, after)
    if after is None:
        return GangEffect(
            gang=before.key,
            vc=vc,
            effect=Effect.FORGOTTEN,
            reason=_why_forgotten(before),
            unplaced=unplaced,
        )
    missing = tuple(slot.member for slot in after.slots if slot.member and _is_missing(slot))
    lost = len(before.slots) - len(after.slots)
    effect, reason = _standing(before, after, len(missing))
    if lost and effect is Effect.KEPT:
        effect, reason = Effect.TRIMMED, f"gang {before.key} goes on with what runs"
    if lost:
        reason += f"; {lost} places that it only held are given up, and their members ask again"
    return GangEffect(
        gang=before.key, vc=vc, effect=effect, reason=reason, missing=missing, unplaced=unplaced
    )


def _standing(before: PlacedGang, after: PlacedGang, missing: int) -> tuple[Effect, str]:
    vc, priority = before.request.vc, before.request.priority
    if missing:
        return Effect.IGNORED, (
            f"{missing} of {len(after.slots)} members of gang {before.key} are on leaf cells "
            "that the new topology does not have; they go on, uncounted"
        )
    if after.downgraded_by is not None and before.downgraded_by is None:
        return Effect.DOWNGRADED, (
            f"VC {vc} has no cells left that gang {before.key} could count on at priority "
            f"{priority}; it goes on as opportunistic"
        )
    if before.downgraded_by is not None and after.downgraded_by is None:
        return Effect.PROMOTED, (
            f"VC {vc} has cells that gang {before.key} can count on again at priority {priority}"
        )
    return Effect.KEPT, f"gang {before.key} goes on as it is"


def _why_forgotten(gang: PlacedGang) -> str:
    if gang.is_preempting:
        return (
            f"gang {gang.key} preempts, and what it had reserved is not there, or not for VC "
            f"{gang.request.vc}, any more; it asks again"
        )
    return (
        f"gang {gang.key} has no member that runs, and the places that it held are not there, or "
        f"not for VC {gang.request.vc}, any more; it asks again"
    )


def _is_missing(slot: MemberSlot) -> bool:
    return not slot.leaves or len(slot.leaves) + slot.missing_leaves < slot.size


def _unplaced(before: PlacedGang, after: PlacedGang | None) -> tuple[PodUid, ...]:
    placed = {slot.member for slot in after.slots} | {*after.waiting_members} if after else set()
    members = [slot.member for slot in before.slots if slot.member] + list(before.waiting_members)
    return tuple(member for member in members if member not in placed)
