"""Which pods are one run, and how it ended."""

from dataclasses import replace
from typing import Any

import pytest

from extender.runs.endings import how_pod_ended, how_run_ended, is_presumed
from extender.runs.model import Cause, Ending, Run, RunOwner, SeenPod
from extender.runs.run_book import RunBook
from extender.runs.summaries import summarise
from policy.pod_life import Disruption, PodLife
from policy.submission import GangKey, PodUid

_GANG = GangKey("lab", "bert", "u1")
_OWNER = RunOwner(
    user="alice",
    group="vision",
    vc="lab",
    requested_class="prod",
    granted_class="test",
    leaf_type=None,
    workload="Job/bert",
    workload_uid="u1",
)
_BY_GPT = Disruption(
    "PreemptionByScheduler",
    "gang lab/bert is preempted by gang lab/gpt (priority 9 in VC lab): a guaranteed gang …",
)


def _pod(name: str, created: float, **life: Any) -> SeenPod:
    return SeenPod(
        uid=PodUid(name),
        name=name,
        gang=_GANG,
        owner=_OWNER,
        life=PodLife(created=created, **life),
        node="n1" if life.get("bound") else None,
        leaf_count=8,
        is_released=bool(life.get("bound")),
    )


def _runs(book: RunBook) -> list[set[str]]:
    return [set(map(str, run.pods)) for run in book]


def _book(*pods: SeenPod, now: float = 1000) -> RunBook:
    book = RunBook()
    for pod in pods:
        book.see(pod, now=now)
    return book


def test_pods_of_a_gang_that_live_at_the_same_time_are_one_run() -> None:
    book = _book(_pod("a", 1), _pod("b", 2))
    assert _runs(book) == [{"a", "b"}]
    [(run, changed)] = book.take_changed(10)
    assert (run.name, changed) == ("a", ["a", "b"])
    assert book.take_changed(10) == []


def test_a_pod_that_replaces_another_joins_the_run_of_those_that_are_left() -> None:
    failed = _pod("a", 1, bound=2, finished=5, has_failed=True)
    assert _runs(_book(failed, _pod("b", 1), _pod("c", 7))) == [{"a", "b", "c"}]


def test_pods_that_are_created_after_all_others_have_ended_are_another_run() -> None:
    failed = _pod("a", 1, bound=2, finished=5, has_failed=True)
    assert _runs(_book(failed, _pod("b", 7))) == [{"a"}, {"b"}]
    assert _runs(_book(_pod("b", 7), failed)) == [{"b"}, {"a"}]


def test_pods_that_are_created_while_a_preempted_gang_ends_are_another_run() -> None:
    first = _pod("a", 1, bound=2, asked_to_end=10, disruption=_BY_GPT)
    second = _pod("b", 1, bound=2, asked_to_end=12, disruption=_BY_GPT)
    assert _runs(_book(first, second, _pod("c", 11), _pod("d", 12))) == [{"a", "b"}, {"c", "d"}]
    assert _runs(_book(second, first, _pod("c", 11), _pod("d", 12))) == [{"b", "a"}, {"c", "d"}]


def test_a_pod_that_overlaps_with_two_runs_shows_that_they_are_one() -> None:
    first = _pod("a", 1, finished=5, has_failed=True)
    last = _pod("c", 6)
    book = _book(first, last)
    assert _runs(book) == [{"a"}, {"c"}]
    book.see(_pod("b", 4, finished=8, has_failed=True), now=9)
    assert _runs(book) == [{"a", "b", "c"}]
    assert [set(changed) for _, changed in book.take_changed(9)] == [{"a", "b", "c"}]


def test_a_pod_whose_gang_was_not_known_yet_moves_to_its_run() -> None:
    book = _book(_pod("a", 1), _pod("b", 1))
    book.see(replace(_pod("a", 1), gang=GangKey("lab", "other")), now=3)
    assert _runs(book) == [{"b"}, {"a"}]
    assert len({run.name for run in book}) == 2
    assert sorted(run.name for run, _ in book.take_changed(9)) == ["a", "b"]


def test_a_run_that_has_ended_is_kept_until_it_is_recorded() -> None:
    book = _book(_pod("a", 1, bound=2))
    book.take_changed(9)
    book.see(_pod("a", 1, bound=2, finished=9, has_succeeded=True), now=10)
    [run] = book.ended
    assert [one.name for one, _ in book.take_changed(9)] == ["a"]
    book.forget(run)
    assert (len(book), book.ended, book.knows(PodUid("a"))) == (0, [], False)


def test_a_run_that_was_over_when_it_was_first_seen_may_be_recorded() -> None:
    book = _book(_pod("a", 1, finished=9, has_succeeded=True))
    assert book.take_changed(9) == []
    [run] = book.ended
    book.mark([run])
    assert len(book.take_changed(9)) == 1


def test_ended_runs_that_are_never_recorded_are_bounded_and_counted() -> None:
    book = RunBook(most_ended=2)
    for number in range(5):
        pod = _pod(f"p{number}", number)
        book.see(replace(pod, gang=GangKey("lab", f"g{number}")), now=number)
        book.lose(pod.uid, now=number, is_presumed=False)
    assert (len(book), book.dropped) == (2, 3)
    assert [run.name for run, _ in book.take_changed(9)] == ["p3", "p4"]


def test_a_gang_that_waited_for_quota_is_admitted_when_it_is_charged() -> None:
    book = _book(replace(_pod("a", 1), is_admitted=False))
    book.take_changed(9)
    book.note_admitted(_GANG, now=7)
    [(run, changed)] = book.take_changed(9)
    assert summarise(run).admitted == 7
    assert changed == ["a"], "the history finds the run by a pod: its name may be another there"
    book.note_admitted(_GANG, now=9)
    assert book.take_changed(9) == []


def _ended(*pods: SeenPod, gone: str = "", cause: str = "") -> Run:
    book = _book(*pods)
    for uid in cause.split():
        book.note_cause(PodUid(uid), Cause(at=20, why=_BY_GPT.message))
    for uid in gone.split():
        book.lose(PodUid(uid), now=30, is_presumed=uid.startswith("x"))
    [run] = book
    return run


_DONE = {"bound": 2.0, "finished": 9.0, "has_succeeded": True}
_FAILED = {
    "bound": 2.0,
    "finished": 9.0,
    "has_failed": True,
    "failure": "container main ended with exit code 1 (Error)",
}


@pytest.mark.parametrize(
    ("run", "ending", "preemptor"),
    [
        (_ended(_pod("a", 1, **_DONE), _pod("b", 1, **_DONE)), "succeeded", None),
        (_ended(_pod("a", 1, **_DONE), _pod("b", 1, bound=2), gone="b"), "succeeded", None),
        (_ended(_pod("a", 1, **_FAILED), _pod("b", 1, bound=2), gone="b"), "failed", None),
        (_ended(_pod("a", 1, **_FAILED), _pod("b", 1, **_DONE)), "failed", None),
        (_ended(_pod("a", 1, bound=2, asked_to_end=8), gone="a"), "deleted", None),
        (_ended(_pod("a", 1), gone="a"), "deleted", None),
        (
            _ended(_pod("a", 1, asked_to_end=8, disruption=_BY_GPT, **_FAILED)),
            "preempted",
            "lab/gpt",
        ),
        (_ended(_pod("a", 1, bound=2), gone="a", cause="a"), "preempted", "lab/gpt"),
        (_ended(_pod("a", 1, asked_to_end=8, **_DONE)), "deleted", None),
        (_ended(_pod("a", 1, asked_to_end=12, **_DONE)), "succeeded", None),
        (_ended(_pod("a", 1, status_reason="Evicted", **_FAILED)), "evicted", None),
        (
            _ended(_pod("a", 1, disruption=Disruption("DeletionByTaintManager", ""), **_FAILED)),
            "evicted",
            None,
        ),
        (
            _ended(
                _pod("a", 1, **_FAILED),
                _pod("b", 1, bound=2, finished=50, has_succeeded=True),
                _pod("c", 12, bound=13, finished=50, has_succeeded=True),
            ),
            "succeeded",
            None,
        ),
    ],
    ids=[
        "all succeeded",
        "the launcher succeeded and its workers were deleted",
        "one failed and its controller deleted the others",
        "one failed and one succeeded",
        "deleted",
        "deleted while it waited",
        "preempted, whatever its containers said when they were told to end",
        "its workload was suspended for another gang",
        "deleted, and its containers ended well",
        "succeeded, and was deleted later",
        "evicted by its kubelet",
        "evicted with its node",
        "a failed member was replaced",
    ],
)
def test_how_a_run_ended(run: Run, ending: str, preemptor: str | None) -> None:
    how = how_run_ended(run)
    assert how is not None
    assert (how.ending, how.preemptor, is_presumed(run)) == (ending, preemptor, False)


def test_a_run_with_a_pod_that_has_not_ended_goes_on() -> None:
    assert how_run_ended(_ended(_pod("a", 1, **_DONE), _pod("b", 1, bound=2))) is None


def test_the_end_of_a_pod_that_was_found_missing_is_presumed() -> None:
    run = _ended(_pod("x", 1, bound=2), gone="x")
    how = how_run_ended(run)
    assert how is not None
    assert (how.ending, is_presumed(run)) == (Ending.DELETED, True)
    known = _ended(_pod("x", 1, **_DONE), gone="x")
    assert not is_presumed(known)


def test_kube_schedulers_victims_are_preempted_for_the_gang_that_the_engine_named() -> None:
    told = Disruption("PreemptionByScheduler", "cellgate-scheduler: preempting to accommodate …")
    book = _book(_pod("a", 1, bound=2))
    book.note_victims([_GANG], preemptor="lab/gpt")
    book.see_last(PodUid("a"), PodLife(created=1, bound=2, asked_to_end=8, disruption=told), now=9)
    [run] = book
    how = how_run_ended(run)
    assert how is not None
    assert (how.ending, how.preemptor) == (Ending.PREEMPTED, "lab/gpt")


def test_a_gang_that_was_half_bound_is_evicted_for_no_other_gang() -> None:
    book = _book(_pod("a", 1, bound=2))
    book.note_cause(PodUid("a"), Cause(at=5, why="gang lab/bert was half bound when the leader …"))
    book.lose(PodUid("a"), now=9, is_presumed=False)
    [run] = book
    how = how_run_ended(run)
    assert how is not None
    assert how.ending is Ending.EVICTED


def test_a_run_is_summed_up_from_its_pods() -> None:
    book = RunBook()
    for pod in (_pod("a", 1), _pod("b", 3)):
        book.see(replace(pod, needed=2), now=4)
    for name, created, bound, started in (("a", 1, 10, 12), ("b", 3, 11, 15)):
        pod = _pod(name, created, bound=bound, started=started, restarts=1)
        book.see(replace(pod, needed=2), now=20)
    failed = _pod("a", 1, bound=10, finished=30, has_failed=True)
    book.see(replace(failed, needed=2), now=31)
    book.see(replace(_pod("c", 35, bound=36), needed=2, node="n2"), now=37)
    [run] = book
    found = summarise(run)
    assert (found.asked, found.admitted, found.released) == (1, 1, 20)
    assert (found.held_from, found.bound, found.started, found.ended) == (10, 11, 15, None)
    assert (found.leaf_count, found.member_count, found.restarts) == (16, 2, 2)
    assert found.nodes == ("n1", "n2")
    assert how_pod_ended(run.pods[PodUid("a")]) is not None
