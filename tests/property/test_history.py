"""Descriptions of a run come in any order, some twice, and mean the same."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from state.history.facts import Certainty, GangFacts, RunTable, merge

_START = datetime(2026, 3, 1, tzinfo=UTC)
_WORDS = st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "B", ""]))
_TIMES = st.one_of(st.none(), st.integers(0, 9).map(lambda hours: _START + timedelta(hours=hours)))


def _facts(stamp: str, pods: str) -> st.SearchStrategy[GangFacts]:
    """One description; no two have the same stamp."""
    certainty = st.sampled_from(Certainty)
    return st.builds(
        GangFacts,
        run=st.sampled_from(["r1", "r2", "r3"]),
        gang=st.just("team-a/bert"),
        user_name=_WORDS,
        asked_at=_TIMES,
        started_at=_TIMES,
        ended_at=_TIMES,
        nodes=st.sets(st.sampled_from("xyz")).map(lambda names: tuple(sorted(names))),
        outcome=_WORDS,
        certainty=certainty,
        stamp=st.just(stamp),
        members=st.dictionaries(
            st.sampled_from(pods),
            certainty.map(lambda known: {"certainty": known, "stamp": stamp}),
            min_size=1,
        ),
    )


@given(one=_facts("1", "ab"), other=_facts("2", "bc"), third=_facts("3", "ac"))
def test_order_and_repetition_do_not_matter(
    one: GangFacts, other: GangFacts, third: GangFacts
) -> None:
    same_name = merge(one, other).run == merge(other, one).run
    assert merge(one, other) == merge(other, one) or not same_name
    assert merge(merge(one, other), third) == merge(one, merge(other, third))
    assert merge(one, one) == one


@given(
    told=st.tuples(_facts("1", "ab"), _facts("2", "cd"), _facts("3", "bc")),
    order=st.permutations(range(3)),
)
def test_a_pod_belongs_to_one_run_in_whatever_order_runs_are_told(
    told: tuple[GangFacts, ...], order: list[int]
) -> None:
    table = RunTable()
    for number in (*order, order[0]):
        table.record(told[number])
    pods = [uid for run in table.values() for uid in run.members]
    assert sorted(pods) == sorted(set(pods)) == sorted(table.run_of)
    assert all(uid in table[run].members for uid, run in table.run_of.items())
