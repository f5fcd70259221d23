"""What a play says, as JSON for programs. Names of fields are stable; times are in UTC. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from policy.wording import moment
from timemachine.capacity import CapacityAnswer, CapacityStep
from timemachine.comparison import ChangeKind, Comparison, GangChange, Side, Waits


def comparison_json(found: Comparison, warnings: Sequence[str]) -> dict[str, Any]:
    """Return everything that the text says, and all rows and gangs that it leaves out."""
    return {
        "source": found.source,
        "from": moment(found.begin),
        "to": moment(found.end),
        "gangs": found.gangs,
        "changed": list(found.changed),
        "before": _side(found.before),
        "after": _side(found.after),
        "counts": {str(kind): found.counts.get(kind, 0) for kind in ChangeKind},
        "gains": list(map(_change, found.gains)),
        "losses": list(map(_change, found.losses)),
        "others": list(map(_change, found.others)),
        "anomalies": [
            {"vc": one.vc, "meanSeconds": one.mean_seconds, "p95Seconds": one.p95_seconds}
            for one in found.anomalies
        ],
        "unknown": list(found.unknown),
        "warnings": list(warnings),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "title": side.title,
        "leafCells": side.leaf_cells,
        "waits": _waits(side.all),
        "waitsBy": {
            str(grouping): {name: _waits(waits) for name, waits in rows.items()}
            for grouping, rows in side.by.items()
        },
        "use": [
            {
                "at": moment(point.at),
                "used": point.used,
                "waiting": point.waiting,
                "usedByVc": dict(point.by_vc),
            }
            for point in side.use
        ],
        "utilisation": side.utilisation,
        "fragmentation": side.fragmentation,
        "refused": side.refused,
        "lowered": side.lowered,
        "preemptions": side.preemptions,
        "longestHeadWaitSeconds": side.longest_head_wait,
    }


def _waits(waits: Waits) -> Mapping[str, float]:
    return {
        "gangs": waits.gangs,
        "meanSeconds": waits.mean,
        "medianSeconds": waits.median,
        "p95Seconds": waits.p95,
        "longestSeconds": waits.longest,
        "neverStarted": waits.never_started,
    }


def _change(one: GangChange) -> dict[str, Any]:
    return {
        "gang": one.gang,
        "user": one.user,
        "vc": one.vc,
        "leafCells": one.leaf_cells,
        "submitted": moment(one.submitted),
        "kind": str(one.kind),
        "seconds": one.seconds,
        "before": one.before,
        "after": one.after,
    }


def capacity_json(answer: CapacityAnswer, warnings: Sequence[str]) -> dict[str, Any]:
    """Return the answer to a capacity question, with every number of nodes that was tried."""
    goal = answer.goal
    return {
        "source": answer.source,
        "goal": {
            "measure": str(goal.measure),
            "seconds": goal.seconds,
            "by": None if goal.grouping is None else str(goal.grouping),
            "name": goal.name or None,
        },
        "node": answer.node,
        "leafCellsEach": answer.leaf_cells_each,
        "most": answer.most,
        "enough": answer.enough,
        "steps": list(map(_step, answer.steps)),
        "unknown": list(answer.unknown),
        "warnings": list(warnings),
    }


def _step(step: CapacityStep) -> dict[str, Any]:
    return {
        "nodes": step.nodes,
        "seconds": step.seconds,
        "isMet": step.is_met,
        "waits": _waits(step.waits),
        "allWaits": _waits(step.all),
        "utilisation": step.utilisation,
    }
