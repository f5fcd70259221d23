"""Facts about a run come in any order, some twice, and mean the same."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from state.history.facts import GangFacts, merge, merge_all

_START = datetime(2026, 3, 1, tzinfo=UTC)
_WORDS = st.one_of(st.none(), st.sampled_from(["a", "b", "ä", "B", ""]))
_NUMBERS = st.one_of(st.none(), st.integers(0, 9))
_TIMES = st.one_of(st.none(), st.integers(0, 9).map(lambda hours: _START + timedelta(hours=hours)))


def some_facts(run: str = "r1") -> st.SearchStrategy[GangFacts]:
    """Facts about one run, some of them unknown."""
    return st.builds(
        GangFacts,
        run=st.just(run),
        gang=st.just("team-a/bert"),
        user_name=_WORDS,
        vc=_WORDS,
        granted_class=_WORDS,
        leaf_count=_NUMBERS,
        member_count=_NUMBERS,
        asked_at=_TIMES,
        started_at=_TIMES,
        ended_at=_TIMES,
        nodes=st.sets(st.sampled_from("xyz")).map(lambda names: tuple(sorted(names))),
        outcome=_WORDS,
    )


@given(one=some_facts(), other=some_facts(), third=some_facts())
def test_order_and_repetition_do_not_matter(
    one: GangFacts, other: GangFacts, third: GangFacts
) -> None:
    assert merge(one, other) == merge(other, one)
    assert merge(merge(one, other), third) == merge(one, merge(other, third))
    assert merge(one, one) == one
    assert merge_all([one, other, one, third, other]) == [merge(merge(one, other), third)]


def test_the_earliest_start_the_latest_end_and_all_nodes_count() -> None:
    webhook = GangFacts(run="r1", gang="a/b", user_name="alice", asked_at=_START)
    first = GangFacts(run="r1", gang="a/b", started_at=_START + timedelta(hours=2), nodes=("n1",))
    second = GangFacts(run="r1", gang="a/b", started_at=_START + timedelta(hours=1), nodes=("n2",))
    end = GangFacts(run="r1", gang="a/b", ended_at=_START + timedelta(hours=5), outcome="failed")
    assert merge_all([end, second, webhook, first]) == [
        GangFacts(
            run="r1",
            gang="a/b",
            user_name="alice",
            asked_at=_START,
            started_at=_START + timedelta(hours=1),
            ended_at=_START + timedelta(hours=5),
            nodes=("n1", "n2"),
            outcome="failed",
        )
    ]
