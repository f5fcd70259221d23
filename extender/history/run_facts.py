"""A run, translated for the history."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from extender.runs.endings import (
    choose,
    how_pod_ended,
    how_run_ended,
    is_presumed,
    presume_pod_end,
)
from extender.runs.model import Ending, HowEnded, Run, RunPod
from extender.runs.summaries import summarise
from policy.submission import PodUid
from state.history.facts import Certainty, GangFacts, Member


def stamp_of(epoch: int, now: datetime) -> str:
    """Return the stamp of what a leader observed at a moment; stamps sort like the two."""
    return f"{epoch:020} {now.astimezone(UTC).isoformat(timespec='microseconds')}"


def build_facts(run: Run, pods: Iterable[PodUid], *, stamp: str) -> GangFacts:
    """Describe a run, with those of its pods that changed."""
    summary, how = summarise(run), how_run_ended(run)
    owner = summary.owner
    return GangFacts(
        run=run.name,
        gang=str(run.gang),
        user_name=owner.user,
        group_name=owner.group,
        vc=owner.vc,
        requested_class=owner.requested_class,
        granted_class=owner.granted_class,
        leaf_type=summary.leaf_type,
        leaf_count=summary.leaf_count,
        member_count=summary.member_count,
        asked_at=_time(summary.asked),
        started_at=_time(summary.bound),
        ended_at=_time(summary.ended),
        nodes=summary.nodes,
        outcome=str(how.ending) if how else None,
        reason=(how.why or None) if how else None,
        preempted_for=how.preemptor if how else None,
        workload=owner.workload,
        workload_uid=owner.workload_uid,
        labels=owner.labels,
        image=summary.image or None,
        estimate_seconds=summary.estimate_seconds,
        limit_seconds=summary.limit_seconds,
        admitted_at=_time(summary.admitted),
        released_at=_time(summary.released),
        held_from=_time(summary.held_from),
        running_at=_time(summary.started),
        restarts=summary.restarts,
        members={uid: _member(run.pods[uid], stamp) for uid in pods if uid in run.pods},
        certainty=_certainty(has_ended=how is not None, is_guess=is_presumed(run)),
        stamp=stamp,
        extent=run.extent,
    )


def _certainty(*, has_ended: bool, is_guess: bool) -> Certainty:
    if not has_ended:
        return Certainty.NO_END
    return Certainty.PRESUMED if is_guess else Certainty.KNOWN


def _member(pod: RunPod, stamp: str) -> Member:
    seen, how = pod.seen, how_pod_ended(pod)
    told = pod.cause.why if pod.cause is not None else None
    facts: dict[str, Any] = {
        "name": seen.name,
        "node": seen.node,
        "leafType": seen.leaf_type,
        "created": _text(seen.life.created),
        "bound": _text(seen.life.bound),
        "started": _text(pod.started),
        "ended": _text(pod.ended),
        "restarts": seen.life.restarts or None,
        "told": told,
        **_how(how),
    }
    return {
        "leafCells": seen.leaf_count,
        "certainty": _certainty(has_ended=how is not None, is_guess=pod.is_presumed),
        "stamp": stamp,
        **{key: value for key, value in facts.items() if value is not None},
    }


def _how(how: HowEnded | None) -> Mapping[str, Any]:
    if how is None:
        return {}
    return {"how": str(how.ending), "why": how.why or None, "preemptedFor": how.preemptor}


def close_lost_pods(
    facts: GangFacts, pods: Iterable[PodUid], *, now: datetime, stamp: str
) -> GangFacts:
    """End pods of a run of the history that are gone, while the run goes on.

    The facts of the run are as old as they were: what was told of it meanwhile counts.
    """
    return replace(facts, members={uid: _lost(facts.members[uid], now, stamp) for uid in pods})


def _lost(member: Member, now: datetime, stamp: str) -> Member:
    told = _how(presume_pod_end(member.get("told")))
    return {
        **member,
        **{key: value for key, value in told.items() if value is not None},
        "ended": now.isoformat(),
        "certainty": Certainty.PRESUMED,
        "stamp": stamp,
    }


def close_lost_run(facts: GangFacts, *, now: datetime, stamp: str) -> GangFacts:
    """End a run of the history whose pods are gone, by what is known of them."""
    members = {
        uid: _lost(member, now, stamp)
        for uid, member in facts.members.items()
        if "how" not in member
    }
    ends = [_read_how(member) for member in {**facts.members, **members}.values()]
    how = choose(ends or [presume_pod_end(None)])
    return replace(
        facts,
        ended_at=now,
        outcome=str(how.ending),
        reason=how.why or None,
        preempted_for=how.preemptor,
        members=members,
        certainty=Certainty.PRESUMED,
        stamp=stamp,
    )


def _read_how(member: Member) -> HowEnded:
    return HowEnded(
        ending=Ending(member["how"]),
        why=member.get("why", ""),
        preemptor=member.get("preemptedFor"),
    )


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _text(seconds: float | None) -> str | None:
    time = _time(seconds)
    return None if time is None else time.isoformat()
