"""Builds what a search for a better Queues document found."""

from collections.abc import Mapping, Sequence
from typing import Final

from cli.tune.result import Asked, Result
from cli.tune.search import Found
from policy.documents.yaml_tree import Plain
from policy.queues.queues import Queues
from timemachine.tuning.bootstrap import Interval
from timemachine.tuning.candidates import CURRENT, Candidate
from timemachine.tuning.criteria import Criteria, Objective
from timemachine.tuning.document import read
from timemachine.tuning.parameters import DEFAULT_SEARCH, Parameter, parse_search
from timemachine.tuning.stretches import divide
from timemachine.tuning.training import Trained
from timemachine.tuning.verdict import Change, Judged, VcChange, Verdict

_CURRENT_WAITS: Final = {
    Objective.MEAN: 46_800.0,
    Objective.LARGE: 260_000.0,
    Objective.FAIRNESS: 90_000.0,
}
_TREE: Final[Mapping[str, Plain]] = {
    "apiVersion": "cellgate.io/v1",
    "kind": "Queues",
    "levels": [{"name": "all", "strategy": "fifo"}],
}


def a_tuning_result(*, is_better: bool = True, prefix: str = "") -> Result:
    """Build a result of twelve documents; names of documents, VCs and notes begin with `prefix`."""
    parameters = parse_search(DEFAULT_SEARCH, levels=["all"])
    first = a_judged("sample 1", 0.31, parameters, prefix=prefix)
    second = a_judged("sample 2", 0.42, parameters, prefix=prefix)
    division = divide(20_000, 20_055, judge_from=20_028)
    others = [a_judged(f"sample {index}", 0.3 + 0.09 * index, parameters) for index in range(3, 12)]
    training = [
        *(Trained(judged=one, is_on_frontier=True) for one in (first, second)),
        *(Trained(judged=one, is_on_frontier=False) for one in others),
        Trained(judged=a_judged(CURRENT, 1.0, ()), is_on_frontier=False),
    ]
    return Result(
        asked=Asked(
            source=f"{prefix}trace.csv",
            notes=(f"{prefix}Names of users are not in the trace.",),
            division=division,
            weeks=division.training[:2],
            judged_gangs=41_200,
            parameters=parameters,
            unsearched={},
            criteria=Criteria(),
            large=16,
            seed=1,
        ),
        candidates=12,
        found=Found(current=(), finalists=(), unjudged=(), played=40, kept=0, was_cut=False),
        verdict=Verdict(
            finalists=[first, second], best=first if is_better else None, confidence=0.95
        ),
        training=training,
        weeks=2,
    )


def a_judged(
    name: str, part: float, parameters: Sequence[Parameter], *, prefix: str = ""
) -> Judged:
    """Build a document under which waits are some part of what they were."""
    values = {one: 3600.0 * (index + 1) for index, one in enumerate(parameters[:2])}
    is_other = name != CURRENT
    return Judged(
        candidate=Candidate(
            name=f"{prefix}{name}" if is_other else name,
            values=values,
            tree=dict(_TREE),
            queues=_queues(),
        ),
        changes={
            objective: a_change(
                before, before * (part if objective is Objective.MEAN else 1.3 - part)
            )
            if is_other
            else a_change(before, before)
            for objective, before in _CURRENT_WAITS.items()
        },
        vcs={
            f"{prefix}vision": _vc(5_210, a_change(40_000.0, 40_000.0 * part)),
            f"{prefix}language": _vc(910, a_change(9_000.0, 9_500.0), is_worse=part > 0.4),
            f"{prefix}speech": _vc(4, a_change(60.0, 90.0), is_judged=False),
        },
    )


def a_change(before: float, after: float) -> Change:
    """Build a change with an interval of a tenth to both sides."""
    value, room = after - before, before / 10
    return Change(
        before=before,
        after=after,
        difference=Interval(value=value, low=value - room, high=value + room),
    )


def _queues() -> Queues:
    found = read(dict(_TREE))
    assert found is not None
    return found


def _vc(gangs: int, mean: Change, *, is_judged: bool = True, is_worse: bool = False) -> VcChange:
    return VcChange(gangs=gangs, mean=mean, is_judged=is_judged, is_worse=is_worse)
