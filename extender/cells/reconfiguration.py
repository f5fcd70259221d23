"""A new topology under running gangs: what becomes of each, before it is done and when it is.

Nothing that runs is ended. A gang is *kept* if its leaf cells exist and its VC can still be given
the cells that it counts on; *downgraded* to opportunistic if they exist but the promise is gone or
would break another; *ignored*, as far as its leaf cells do not exist any more. Gangs of high
priority come first, then old ones: they are the last to lose a share that shrank. Preemptions that
are under way are forgotten; who preempted asks again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.cells.gangs import Gang
from policy.submission import GangKey, PodUid, VcName


class Effect(StrEnum):
    """What a new topology means for a gang."""

    KEPT = "kept"
    DOWNGRADED = "downgraded"
    IGNORED = "ignored"
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


def replay_order(gangs: Sequence[Gang]) -> list[Gang]:
    """In which order gangs claim their cells anew."""
    return sorted(gangs, key=lambda gang: (-gang.priority, gang.born))


def effects(before: Sequence[Gang], after: dict[GangKey, Gang]) -> Iterator[GangEffect]:
    """Compare gangs before and after, by key."""
    for gang in sorted(before, key=lambda gang: gang.key):
        yield _effect(gang, after.get(gang.key))


def _effect(before: Gang, after: Gang | None) -> GangEffect:
    vc = before.request.vc
    if after is None:
        reason = f"gang {before.key} has no member that runs; it asks again"
        return GangEffect(gang=before.key, vc=vc, effect=Effect.FORGOTTEN, reason=reason)
    gone = tuple(
        slot.member for slot in after.slots if slot.member and len(slot.leaves) < slot.size
    )
    if gone:
        reason = (
            f"{len(gone)} of {len(after.slots)} members of gang {before.key} are on leaf cells "
            "that the new topology does not have; they go on, uncounted"
        )
        effect = Effect.IGNORED
    elif before.is_guaranteed and not after.is_guaranteed:
        reason = (
            f"VC {vc} has no cells left that gang {before.key} could count on at priority "
            f"{before.request.priority}; it goes on as opportunistic"
        )
        effect = Effect.DOWNGRADED
    else:
        reason, effect = f"gang {before.key} goes on as it is", Effect.KEPT
    return GangEffect(gang=before.key, vc=vc, effect=effect, reason=reason, missing=gone)
