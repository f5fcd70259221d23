"""The documents that are tried."""

from tests.support.timemachine.tuned_days import a_tree, searched
from timemachine.tuning.candidates import CURRENT, propose
from timemachine.tuning.document import write

_TWO_LEVELS = """
apiVersion: cellgate.io/v1
kind: Queues
levels:
- {name: fast, who: {classes: [prod]}, strategy: fifo}
- {name: rest, strategy: fifo, promoteAfter: 24h}
"""


def test_the_current_document_and_pure_strategies_are_tried_before_samples() -> None:
    parameters = searched(
        "worth.class=0..384h", "worth.fairShare=0..384h", "worth.shortRun=0..384h"
    )
    found = propose(a_tree(), parameters, count=12, seed=1)
    names = [one.name for one in found]
    assert names[:5] == [CURRENT, "fifo", "fair-share", "shortest-first", "sample 1"]
    assert len(found) == 13
    assert found[0].values == {}


def test_a_strategy_that_is_the_current_document_is_not_tried_again() -> None:
    found = propose(a_tree(), searched("worth.class=0..168h"), count=4, seed=1)
    assert "priority" not in [one.name for one in found]


def test_strategies_stay_within_what_is_allowed() -> None:
    (parameter,) = searched("worth.shortRun=0..24h")
    found = {one.name: one for one in propose(a_tree(), [parameter], count=4, seed=1)}
    assert found["shortest-first"].values == {parameter: 24 * 3600.0}
    assert "class: 168h" in found["shortest-first"].text


def test_the_same_seed_gives_the_same_documents_and_another_one_others() -> None:
    parameters = searched("worth.shortRun=0..384h", "worth.smallGang=0..192h")
    texts = [
        [one.text for one in propose(a_tree(), parameters, count=9, seed=seed)]
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert all(len(set(some)) == len(some) for some in texts)


def test_samples_cover_each_range() -> None:
    (first, second) = searched("reservation.backfillQuantile=0.5..1", "worth.smallGang=0..192h")
    found = [one for one in propose(a_tree(), [first, second], count=20, seed=3)][-18:]
    tenths = {int((one.values[first] - 0.5) * 20) for one in found}
    assert len(tenths) >= 8


def test_documents_that_would_be_refused_are_sampled_again() -> None:
    """The worth of the first level may be 24 h at most: the second one promotes after so long."""
    parameters = searched("worth.shortRun@fast=0..384h", levels=("fast", "rest"))
    found = propose(a_tree(_TWO_LEVELS), parameters, count=12, seed=1)
    assert len(found) == 13
    assert all(one.queues.levels[0].horizon <= 24 * 3600 for one in found)


def test_without_parameters_only_the_current_document_is_tried() -> None:
    (found,) = propose(a_tree(), [], count=12, seed=1)
    assert found.text == write(a_tree())
