"""Which factors tell the gangs of a history apart: only their worth can be searched.

Where a factor is the same for all gangs, no play can tell a good worth from a bad one, and what a
search would write is chance.
"""

from collections.abc import Iterable, Mapping, Sequence

from policy.policy import Policy
from policy.queues.factors import FactorName
from timemachine.model import Arrival
from timemachine.tuning.parameters import Parameter


def without_effect(
    parameters: Iterable[Parameter], arrivals: Sequence[Arrival], policy: Policy
) -> Mapping[Parameter, str]:
    """Return the parameters that cannot be searched, with the reason."""
    reasons = {factor: _reason(factor, arrivals, policy) for factor in FactorName}
    found = {one: reasons[one.factor] for one in parameters if one.factor is not None}
    return {one: reason for one, reason in found.items() if reason}


def _reason(factor: FactorName, arrivals: Sequence[Arrival], policy: Policy) -> str:
    """Say why a factor is the same for all gangs; empty if it is not."""
    match factor:
        case FactorName.CLASS:
            is_lowered = bool(policy.rules.rules or policy.quotas.groups)
            same = not is_lowered and _is_one({one.requested_class for one in arrivals})
            return "all gangs have one class" if same else ""
        case FactorName.USER_LEVEL:
            return "" if policy.queues.user_levels else "the document has no userLevels"
        case FactorName.GROUP_LEVEL:
            return "" if policy.queues.group_levels else "the document has no groupLevels"
        case FactorName.FAIR_SHARE:
            same = _is_one({(one.user, one.charged_group, one.groups) for one in arrivals})
            return "all gangs are of one user" if same else ""
        case FactorName.SMALL_GANG:
            return "all gangs are of one size" if _is_one_size(arrivals) else ""
        case FactorName.ASKED:
            same = _is_one({one.limit_seconds for one in arrivals})
            return "all gangs have the same limit, or none" if same else ""
        case FactorName.FILL:
            return "all gangs are of one VC" if _is_one({one.vc for one in arrivals}) else ""
        case FactorName.START_BY:
            return "wished starts are not part of the history"
        case FactorName.SHORT_RUN:
            return ""


def _is_one(values: set[object]) -> bool:
    return len(values) <= 1


def _is_one_size(arrivals: Sequence[Arrival]) -> bool:
    return _is_one({one.leaf_cells for one in arrivals})
