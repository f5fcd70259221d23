"""The JSON of `/v1/…`: gangs, VCs, cells, waiting gangs and decisions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from extender.cells.model import Decision, GangView, Place, Preempt, Reason
from extender.cells.views.state_views import CellView, VcView
from extender.outcomes.gang_ends import GangEnd
from extender.simulate.simulator import Simulation
from policy.admission.gang_decision import GangDecision
from policy.placement import Placement
from policy.submission import GangKey, PodUid
from policy.topology import Backing
from policy.wording import moment
from state.log.records import DecisionRecord

JsonObject = dict[str, Any]


Names = Callable[[PodUid], str | None]
"""Finds the name of a pod by its UID; None if the pod is gone."""


def show_gang(gang: GangView, name_of: Names) -> JsonObject:
    """Show a gang that holds or reserves leaf cells."""
    return {
        "gang": str(gang.gang),
        **if_any("uid", gang.gang.owner or None),
        "size": gang.size,
        "vc": gang.vc,
        "priority": gang.priority,
        "state": gang.state,
        "guaranteed": gang.is_guaranteed,
        "members": [
            show_member(uid, placement, name_of) | {"bound": uid in gang.bound}
            for uid, placement in gang.members.items()
        ],
        "held": [show_placement(placement) for placement in gang.held],
        **if_any("downgradedBy", str(gang.downgraded_by) if gang.downgraded_by else None),
        **if_any("victims", list(map(str, gang.victims))),
    }


def show_member(uid: PodUid, placement: Placement, name_of: Names) -> JsonObject:
    """Show a member and its place."""
    return {**if_any("pod", name_of(uid)), "uid": uid, **show_placement(placement)}


def show_lease(gang: GangView, name_of: Names) -> JsonObject:
    """Show the places that a gang holds and has not bound yet."""
    unbound = {uid: place for uid, place in gang.members.items() if uid not in gang.bound}
    return {
        "gang": str(gang.gang),
        "vc": gang.vc,
        "members": [show_member(uid, place, name_of) for uid, place in unbound.items()],
        "held": [show_placement(place) for place in gang.held],
    }


def is_leased(gang: GangView) -> bool:
    """Whether a gang holds a place that is not bound yet."""
    return bool(gang.held) or len(gang.bound) < len(gang.members)


def show_placement(placement: Placement) -> JsonObject:
    """Show where a member runs, or will run."""
    return {
        "node": placement.node,
        "leafCells": list(placement.leaf_cells),
        **if_any("vcCell", placement.vc_cell),
    }


def show_vc(vc: VcView, backing: Sequence[Backing]) -> JsonObject:
    """Show a VC: what it was promised, how much of it nodes back, and the state of each cell."""
    return {
        "vc": vc.name,
        "promises": [
            {
                "leafType": one.leaf_type,
                "level": one.level,
                "promised": one.promised,
                "backed": one.backed,
                **if_any("domain", one.domain),
            }
            for one in backing
        ],
        "cells": [
            {
                "address": cell.address,
                "chain": cell.chain,
                "type": cell.cell_type,
                "level": cell.level,
                "state": cell.state,
                "priority": cell.priority,
                "healthy": cell.is_healthy,
                "doomed": cell.is_doomed,
                **if_any("pinned", cell.pinned),
                **if_any("mappedTo", cell.mapped_to),
            }
            for cell in vc.cells
        ],
        "borrowedLeafCells": list(vc.opportunistic),
    }


def show_cell(cell: CellView) -> JsonObject:
    """Show a physical cell and its children."""
    return {
        "address": cell.address,
        "type": cell.cell_type,
        "level": cell.level,
        "state": cell.state,
        "priority": cell.priority,
        "healthy": cell.is_healthy,
        "idleLeafCells": cell.idle_count,
        **if_any("vc", cell.vc),
        **if_any("vcCell", cell.vc_cell),
        **if_any("pinned", cell.pinned),
        **if_any("gang", str(cell.gang) if cell.gang else None),
        **if_any("children", [show_cell(child) for child in cell.children]),
    }


def show_decision(decision: Decision) -> JsonObject:
    """Show a decision."""
    if isinstance(decision, Place):
        return {
            "outcome": "placed",
            "reason": f"placed on {decision.placement.node}",
            "placement": show_placement(decision.placement),
            "others": [show_placement(place) for place in decision.others],
            "downgraded": list(map(str, decision.downgraded)),
            "victims": [],
        }
    victims: Sequence[Any] = decision.victims if isinstance(decision, Preempt) else ()
    return {
        "outcome": str(decision.reason.code),
        "reason": decision.reason.text,
        "change": decision.reason.change,
        "victims": list(map(str, victims)),
    }


def show_simulation(simulation: Simulation, pods_of: Callable[[GangKey], list[str]]) -> JsonObject:
    """Show what would happen to a pod; `pods_of` returns the names of a gang's pods."""
    admission, plan = simulation.admission, simulation.plan
    if plan is None:
        shape: JsonObject = {"outcome": "refused", "reason": admission.refusal, "victims": []}
    elif isinstance(plan, Reason):
        shape = {
            "outcome": str(plan.code),
            "reason": plan.text,
            "change": plan.change,
            "victims": [],
        }
    else:
        shape = show_decision(plan)
    victims = plan.victims if isinstance(plan, Preempt) else ()
    return {
        **shape,
        "victimPods": [name for gang in victims for name in pods_of(gang)],
        **if_any("expectedStart", simulation.start),
        "admission": show_admission(admission.decision),
        "warnings": list(admission.warnings),
        "problems": list(admission.problems),
    }


def show_admission(decision: GangDecision | None) -> JsonObject | None:
    """Show what rules and quotas decide; None if the pod is refused before they are asked."""
    if decision is None:
        return None
    rules = decision.admission.rules
    return {
        "outcome": decision.outcome,
        "requestedClass": rules.requested_class,
        "class": decision.gang_class,
        **if_any("group", decision.group),
        **if_any("earlierDecision", None if decision.is_new else str(decision.decision_id)),
        "rules": [hit.number for hit in rules.hits],
        "explanation": list(decision.explain()),
    }


def show_record(record: DecisionRecord) -> JsonObject:
    """Show a row of the decision log."""
    return {
        "at": moment(record.at),
        "service": record.service,
        "kind": record.kind,
        "subject": record.subject,
        "podUid": record.pod_uid,
        "outcome": record.outcome,
        "reason": record.reason,
        "policyVersion": record.policy_version,
        "latencySeconds": record.latency_seconds,
        "details": _show_details(record.details),
    }


def _show_details(details: Mapping[str, Any]) -> JsonObject:
    """Name the number that rows of earlier versions have for the places of other members."""
    decision = details.get("decision")
    if isinstance(decision, Mapping) and isinstance(decision.get("others"), int):
        others = {"checksum": decision["others"]}
        return {**details, "decision": {**decision, "others": others}}
    return dict(details)


def show_end(end: GangEnd) -> JsonObject:
    """Show why a gang was ended, and how."""
    workload = end.workload.reference if end.workload is not None else None
    return {
        "why": end.why,
        "way": end.way,
        "at": moment(end.at),
        **if_any("workload", workload),
    }


def if_any(key: str, value: object) -> JsonObject:
    """Return a field of a JSON object, or nothing if it is empty."""
    return {key: value} if value else {}
