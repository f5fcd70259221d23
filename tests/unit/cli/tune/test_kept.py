"""The file of finished evaluations."""

from pathlib import Path

import pytest

from cli.tune.kept import Evaluation, KeptEvaluations, fingerprint
from policy.errors import SettingsError
from tests.support.timemachine.tuned_days import a_day, a_tree, searched
from tests.support.timemachine.worlds import a_world, an_arrival
from timemachine.tuning.candidates import propose
from timemachine.tuning.screening import Task
from timemachine.tuning.stretches import divide

_FIRST, _SECOND, _THIRD = propose(a_tree(), searched("worth.shortRun=0..9h"), count=2, seed=1)
_WEEK, _NEXT, *_ = divide(0, 40, judge_from=28).training
_FOUND = Evaluation(days=[a_day(0, {"a": [1.5, 2.5]}, large=[2.5]), a_day(1, {})], seconds=2.0)


def test_what_is_finished_is_found_again_by_another_process(tmp_path: Path) -> None:
    kept = KeptEvaluations("arrivals-1", tmp_path / "kept")
    kept.keep(Task(_FIRST, _WEEK), _FOUND)
    again = KeptEvaluations("arrivals-1", tmp_path / "kept")
    assert again.load() == 1
    assert again.of(Task(_FIRST, _WEEK)) == _FOUND
    assert again.of(Task(_FIRST, _NEXT)) is None
    assert again.of(Task(_SECOND, _WEEK)) is None


def test_evaluations_of_other_arrivals_are_not_taken(tmp_path: Path) -> None:
    KeptEvaluations("arrivals-1", tmp_path / "kept").keep(Task(_FIRST, _WEEK), _FOUND)
    other = KeptEvaluations("arrivals-2", tmp_path / "kept")
    assert other.load() == 0
    assert other.of(Task(_FIRST, _WEEK)) is None


def test_a_line_that_was_cut_off_is_played_again_and_the_next_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    KeptEvaluations("one", path).keep(Task(_FIRST, _WEEK), _FOUND)
    KeptEvaluations("one", path).keep(Task(_SECOND, _WEEK), _FOUND)
    path.write_bytes(path.read_bytes()[:-20])
    kept = KeptEvaluations("one", path)
    assert kept.load() == 1
    kept.keep(Task(_THIRD, _WEEK), _FOUND)
    assert KeptEvaluations("one", path).load() == 2


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'"days":[', b'"days":[5,'),
        (b'"waits":{', b'"waits":{"b":7,'),
        (b'"large":[', b'"large":["x",'),
        (b'"seconds":2.0', b'"seconds":null'),
        (b'"key":', b'"key":5,"old":'),
    ],
)
def test_a_damaged_line_is_played_again(tmp_path: Path, right: bytes, wrong: bytes) -> None:
    path = tmp_path / "kept"
    kept = KeptEvaluations("one", path)
    kept.keep(Task(_FIRST, _WEEK), _FOUND)
    whole = path.read_bytes()
    assert right in whole
    kept.keep(Task(_SECOND, _WEEK), _FOUND)
    path.write_bytes(whole.replace(right, wrong, 1) + path.read_bytes()[len(whole) :])
    again = KeptEvaluations("one", path)
    assert again.load() == 1
    assert again.of(Task(_FIRST, _WEEK)) is None
    assert again.of(Task(_SECOND, _WEEK)) == _FOUND


def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("worth: 2h\n")
    with pytest.raises(SettingsError, match="is not a file of finished evaluations"):
        KeptEvaluations("one", path).load()
    assert path.read_text() == "worth: 2h\n"


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot write"):
        KeptEvaluations("one", tmp_path / "no" / "kept").keep(Task(_FIRST, _WEEK), _FOUND)
    with pytest.raises(SettingsError, match="cannot read"):
        KeptEvaluations("one", tmp_path).load()


def test_the_fingerprint_depends_on_arrivals_world_and_what_is_large() -> None:
    arrivals, world = [an_arrival("one")], a_world()
    known = fingerprint(arrivals, world, large=16)
    others = [
        fingerprint([an_arrival("one", runs=1.0)], world, large=16),
        fingerprint(arrivals, a_world(queues="levels: [{name: all, strategy: fifo}]"), large=16),
        fingerprint(arrivals, world, large=8),
    ]
    assert fingerprint([an_arrival("one")], a_world(), large=16) == known
    assert len({known, *others}) == 4
