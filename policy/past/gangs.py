"""The gangs of a day, from rows of the decision log and charges of the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from policy.admission.charge_request import ChargeRequest
from policy.admission.logged import is_complete
from policy.admission.logged_request import decode_request
from policy.policy import Policy
from policy.quotas.charge import Charge
from policy.rules.decision import Outcome
from policy.submission import GroupName, UserName

_RETRY_SECONDS: Final = 900.0
"""A controller submits a refused pod again after at most some minutes."""
_USUAL_SECONDS: Final = 3600.0
"""How long a gang holds its leaf cells where no gang of the day has ended."""
_FEWEST: Final = 5
"""Gangs of a user that have ended, from which on their median counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRow:
    """A row of the decision log about an admission."""

    at: float
    """Seconds since 1970."""
    subject: str
    outcome: str
    details: Mapping[str, Any]
    inputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCharge:
    """A charge that was in force at some time of the day."""

    charge: Charge
    since: float
    until: float | None
    """None while it is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGang:
    """A gang as it was submitted, and how long it held its leaf cells."""

    at: float
    request: ChargeRequest
    held_seconds: float | None
    """None if it has not ended."""
    is_assumed: bool = False
    """Whether the time is assumed, because the gang was not charged that day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDay:
    """What was submitted from one moment to another, and what was held at the beginning."""

    since: float
    until: float
    gangs: Sequence[PastGang]
    held: Sequence[HeldCharge]
    """Charges that were in force when the time begins."""
    assumed_seconds: float
    """The median time for which gangs of the day held their leaf cells."""
    older: int = 0
    """Submissions that earlier versions have logged: what they asked for is not known."""


def read_day(
    rows: Iterable[AdmissionRow],
    charges: Iterable[HeldCharge],
    *,
    policy: Policy,
    since: float,
    until: float,
) -> PastDay:
    """Put rows and charges together; `policy` is the one in force."""
    listed = sorted(charges, key=lambda one: one.since)
    ends: dict[UUID, HeldCharge] = {}
    for one in listed:  # a gang that was resized or raised has one after the other
        first = ends.get(one.charge.decision)
        ends[one.charge.decision] = one if first is None else replace(one, since=first.since)
    submitted = [one for one in rows if _is_submission(one)]
    complete = [one for one in submitted if is_complete(one.inputs)]
    asked = [(row.at, decode_request(row, policy)) for row in _without_retries(complete)]
    taken = _Times(ends, [request for _, request in asked])
    return PastDay(
        since=since,
        until=until,
        gangs=[_gang(at, request, ends=ends, taken=taken) for at, request in asked],
        held=[one for one in listed if one.since < since],
        assumed_seconds=taken.of_all,
        older=len(submitted) - len(complete),
    )


def _is_submission(row: AdmissionRow) -> bool:
    """Tell whether a row is about a new gang, and not about one more member or a helper."""
    is_member = "held" in row.inputs or "isHelper" in row.inputs
    return bool(row.details.get("leafCount")) and not is_member


def _without_retries(rows: Iterable[AdmissionRow]) -> list[AdmissionRow]:
    """Keep one row of each gang that was refused and submitted again, in their order.

    A gang that was let in at last counts from then on, any other from its first refusal.
    """
    refused: dict[tuple[str, Any], tuple[AdmissionRow, float]] = {}
    kept: list[AdmissionRow] = []
    for row in rows:
        key = row.subject, row.details.get("user")
        first, last = refused.pop(key, (row, row.at))
        if row.at - last > _RETRY_SECONDS:
            kept.append(first)
            first = row
        if row.outcome == Outcome.REFUSED:
            refused[key] = first, row.at
        else:
            kept.append(row)
    kept += [first for first, _ in refused.values()]
    return sorted(kept, key=lambda row: row.at)


class _Times:
    """How long gangs held their leaf cells."""

    def __init__(self, ends: Mapping[UUID, HeldCharge], asked: Iterable[ChargeRequest]) -> None:
        of_user: dict[UserName, list[float]] = {}
        for request in asked:
            found = ends.get(request.decision)
            if found is not None and found.until is not None:
                seconds = found.until - found.since
                of_user.setdefault(request.submission.user, []).append(seconds)
        everything = [seconds for some in of_user.values() for seconds in some]
        self.of_all = _median(everything) if everything else _USUAL_SECONDS
        self._of_user = {
            user: _median(some) for user, some in of_user.items() if len(some) >= _FEWEST
        }

    def of(self, user: UserName) -> float:
        """Return what is usual for a user."""
        return self._of_user.get(user, self.of_all)


def _median(numbers: Sequence[float]) -> float:
    ranked, middle = sorted(numbers), len(numbers) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2


def _gang(
    at: float, request: ChargeRequest, *, ends: Mapping[UUID, HeldCharge], taken: _Times
) -> PastGang:
    # The class of its PodGroup follows from the policy that was in force.
    request = replace(request, fixed_class=None, highest_class=None)
    found = ends.get(request.decision)
    if found is None:
        seconds = taken.of(request.submission.user)
        return PastGang(at=at, request=request, held_seconds=seconds, is_assumed=True)
    seconds_held = None if found.until is None else max(0.0, found.until - found.since)
    return PastGang(at=at, request=request, held_seconds=seconds_held)


def known_groups(request: ChargeRequest) -> tuple[GroupName, ...]:
    """Return the groups of a submitter that the Identity document of its policy does not state."""
    ours = request.policy.identity.groups_of(request.submission.user, ())
    return tuple(group for group in request.submission.groups if group not in ours)
