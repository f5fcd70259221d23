"""What an admission decision depended on, as the decision log has it, and the decision made again.

Beside what was asked for (`policy.admission.logged_request`), a row has what the submitter held,
what was used of each quota, and which rules match names. The policy is a document of the log, which
`policy.policy.restore` reads. `decide_again` makes the decision from these inputs alone, with the
functions that made it. Rows of earlier versions are not `is_complete`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from policy.admission import growth
from policy.admission.basis import Basis, GrowthBasis, in_units
from policy.admission.charge_request import ChargeRequest
from policy.admission.gang_decision import GangDecision, apply_rules, decide_now, follow_charge
from policy.admission.logged_request import (
    LoggedRow,
    Row,
    decode_held,
    decode_request,
    encode_held,
    encode_request,
)
from policy.admission.preview import find_over
from policy.errors import RequestError
from policy.policy import Policy
from policy.quotas.admission import AdmissionDecision
from policy.quotas.charge import is_over, to_exceeded
from policy.rules.decision import RuleDecision
from policy.rules.matching import Matcher
from policy.shaping import PodOrigin
from policy.submission import GroupName, Occupancy

GROUP_LABEL: Final = "cellgate.io/group"
"""The label of a pod that names the group to charge."""
_GROUP_PATH: Final = f"metadata.labels[{GROUP_LABEL}]"
WORDING: Final = 1
"""Version of the sentences that explain admission decisions. Raise it whenever one changes: within
one version, a replay compares explanations, too. Rows without it lack inputs."""
_DECIDED: Final = ("class", "podClass", "group", "risesTo", "exceeded")
_FOUND: Final = ("wording", "hits", "rules", "when", "shapes")


class DecisionRow(LoggedRow, Protocol):
    """A row with the decision."""

    @property
    def outcome(self) -> str:
        """What was decided."""

    @property
    def reason(self) -> str:
        """The explanation."""


def is_complete(inputs: Mapping[str, Any]) -> bool:
    """Tell whether a row has all that its decision depended on."""
    return "wording" in inputs


def encode_details(request: ChargeRequest, decision: GangDecision) -> Row:
    """Say for people who asked for what, and what they got."""
    submission = request.submission
    return {
        "decision": str(decision.decision_id),
        "user": submission.user,
        "group": request.group_name,
        "vc": submission.vc,
        "requestedClass": submission.requested_class,
        "class": decision.gang_class,
        **({} if decision.effective_class is None else {"podClass": decision.final_class}),
        **_encode_over(decision),
        "leafCount": submission.leaf_count,
    }


def _encode_over(decision: GangDecision) -> Row:
    """Name the class that quotas keep from the gang, and the limits that it exceeds."""
    quota = decision.admission.quota
    if decision.rises_to is None:
        return {}
    exceeded = [] if quota is None else [str(one) for one in quota.exceeded]
    return {"risesTo": decision.rises_to, "exceeded": exceeded}


def encode_inputs(request: ChargeRequest, decision: GangDecision) -> Row:
    """Encode what a decision depended on, beside its details and the policy."""
    usage, basis = decision.admission.rules.usage, decision.basis
    row = encode_request(request)
    if usage is not None:
        row["usage"] = [usage.occupied, usage.occupied_high]
    if basis.used is not None:
        row["used"] = list(basis.used)
    if basis.growth is not None:
        row |= _encode_growth(request, basis.growth)
    if decision.admission.notes:
        row["notes"] = list(decision.admission.notes)
    return row | encode_rules(decision.admission.rules, request.policy)


def encode_rules(rules: RuleDecision, policy: Policy) -> Row:
    """Encode which rules took effect, which match names, and the results of `when`.

    Rules that name no user, group and VC match all names, and are left out.
    """
    matches = rules.matches
    found: Row = {
        "hits": [hit.number for hit in rules.hits],
        "rules": _format_places(matches.rules & ~policy.rules.for_all),
        "when": [[place + 1, name, answer] for (name, place), answer in matches.answers.items()],
    }
    return {"wording": WORDING, **{name: value for name, value in found.items() if value}}


def _format_places(places: int) -> str:
    """Write a bit set as the numbers of rules, from 1: `2,5-7`."""
    return ",".join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in _runs(places)
    )


def _runs(places: int) -> Iterator[tuple[int, int]]:
    bits = f"{bin(places)[:1:-1]}0"
    first = bits.find("1")
    while first >= 0:
        last = bits.find("0", first)
        yield first + 1, last
        first = bits.find("1", last)


def _encode_growth(request: ChargeRequest, basis: GrowthBasis) -> Row:
    row: Row = {"held": encode_held(request, basis.held)}
    if basis.leaf_count is not None:
        row["grows"] = basis.leaf_count
    if basis.exceeded:
        limits = growth.find_limits(request, basis.held)
        over = ((limits.index(one.limit), in_units(one), one.asked) for one in basis.exceeded)
        row["over"] = [list(one) for one in over]
    return row | ({"isRunning": True} if basis.is_running else {})


def decide_again(
    row: LoggedRow, policy: Policy, *, matcher: Matcher | None = None
) -> tuple[ChargeRequest, GangDecision]:
    """Make the decision of a row again, by its inputs.

    `matcher` says which rules match names; None matches them by their texts. Raises RequestError if
    the pod would be refused as one that does not match its gang.
    """
    request, inputs = decode_request(row, policy), row.inputs
    usage = _read_usage(inputs)
    notes = tuple(inputs.get("notes", ()))
    if "grows" in inputs:
        held = decode_held(request, inputs["held"])
        judged = growth.judge(request, held, inputs["grows"], usage=usage, matcher=matcher)
        if judged.is_refused:
            return request, growth.refuse_by_rules(request, held, judged, notes=notes)
        admission = AdmissionDecision(rules=judged.rules, notes=notes)
        return request, follow_charge(request, held, admission)
    rules = apply_rules(request, usage, matcher=matcher)
    admission = AdmissionDecision(rules=rules, notes=notes)
    if "held" in inputs:
        return request, _compare_growth(request, inputs, admission)
    used = tuple(inputs["used"]) if "used" in inputs else None
    admission = replace(admission, quota=find_over(request, rules, used))
    return request, decide_now(request, admission, basis=Basis(used=used))


def _read_usage(inputs: Mapping[str, Any]) -> Occupancy | None:
    if "usage" not in inputs:
        return None
    occupied, occupied_high = inputs["usage"]
    return Occupancy(occupied=occupied, occupied_high=occupied_high)


def _compare_growth(
    request: ChargeRequest, inputs: Mapping[str, Any], admission: AdmissionDecision
) -> GangDecision:
    """Compare a gang that is to grow with its quotas."""
    held = decode_held(request, inputs["held"])
    is_running = inputs.get("isRunning", False)
    followed = follow_charge(request, held, admission, is_running=is_running)
    limits = growth.find_limits(request, held)
    exceeded = [
        to_exceeded(limits[place], used=used, asked=asked)
        for place, used, asked in inputs.get("over", ())
        if is_over(limits[place], used, asked)
    ]
    return (
        growth.refuse_by_quotas(request, held, followed, tuple(exceeded)) if exceeded else followed
    )


def describe_logged(row: DecisionRow) -> Row:
    """Return all that was decided, of a row."""
    details, inputs = row.details, row.inputs
    return {
        "outcome": str(row.outcome),
        "reason": row.reason,
        **{name: details[name] for name in _DECIDED if name in details},
        **{name: inputs[name] for name in _FOUND if name in inputs},
    }


def describe_decision(request: ChargeRequest, decision: GangDecision) -> Row:
    """Return all that was decided, of a decision that was made again."""
    details = encode_details(request, decision)
    shapes = [shape.name for shape in request.policy.shapes.matching(_origin(request))]
    return {
        "outcome": decision.outcome.value,
        "reason": explain(decision),
        **{name: details[name] for name in _DECIDED if name in details},
        "group": _find_group(request),
        **encode_rules(decision.admission.rules, request.policy),
        **({"shapes": shapes} if shapes else {}),
    }


def find_unequal(logged: Mapping[str, Any], replayed: Mapping[str, Any]) -> list[str]:
    """Return what differs between both sides of a decision.

    Explanations are compared only if both are in the same wording.
    """
    is_reworded = "error" not in replayed and logged.get("wording") != replayed.get("wording")
    names = dict.fromkeys((*logged, *replayed))
    left_out = ("wording", "reason") if is_reworded else ("wording",)
    return [
        name for name in names if name not in left_out and logged.get(name) != replayed.get(name)
    ]


def explain(decision: GangDecision) -> str:
    """Write the explanation of a decision as one text."""
    return " ".join(decision.explain())


def _origin(request: ChargeRequest) -> PodOrigin:
    submission = request.submission
    is_known = not request.policy.identity.is_trusted(submission.user)
    return PodOrigin(
        user=submission.user if is_known else None,
        groups=submission.groups if is_known else (),
        vc=submission.vc,
        namespace=submission.gang.namespace,
        labels=submission.labels,
    )


def _find_group(request: ChargeRequest) -> str | None:
    """Return the group that pays, or why there is none."""
    if request.is_helper:
        return None
    submission, policy = request.submission, request.policy
    try:
        found = policy.quotas.find(
            submission.user,
            submission.groups,
            named=GroupName(submission.labels.get(GROUP_LABEL, "")) or None,
            path=_GROUP_PATH,
            by_identity=policy.identity.groups_of(submission.user, ()),
        )
    except RequestError as exc:
        return str(exc)
    return None if found is None else found.name
