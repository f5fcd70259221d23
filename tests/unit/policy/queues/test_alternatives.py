"""Alternatives of a gang: how the annotation is read, and what they change."""

import pytest

from policy.documents.alternatives_list import parse_alternatives, read_alternatives
from policy.errors import RequestError
from policy.queues.alternatives import Alternative, GangTerms, all_terms
from policy.submission import LeafType, VcName

_PATH = "metadata.annotations[cellgate.io/alternatives]"
_V100, _SHARED = LeafType("V100"), VcName("shared")


def _problems(text: str) -> list[str]:
    with pytest.raises(RequestError) as caught:
        parse_alternatives(text, path=_PATH)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "text",
    [
        '[{"leafType": "V100"}, {"vc": "shared", "minMembers": 2}]',
        "- leafType: V100\n- vc: shared\n  minMembers: 2\n",
    ],
    ids=["JSON", "YAML"],
)
def test_annotation_is_read_in_its_order(text: str) -> None:
    assert parse_alternatives(text, path=_PATH) == (
        Alternative(leaf_type=_V100),
        Alternative(vc=_SHARED, min_members=2),
    )


def test_leaf_type_that_looks_like_a_number_is_read_as_written() -> None:
    assert parse_alternatives("[{leafType: 0100}]", path=_PATH)[0].leaf_type == "0100"


def test_every_problem_is_told_with_its_path() -> None:
    assert _problems("[{vc: ''}, {minMembers: 0}, {gpu: V100}, 4, {}]") == [
        f'{_PATH}[0].vc: must be the value of a label, not ""',
        f"{_PATH}[1].minMembers: must be a whole number from 1 to 100000, not 0",
        f"{_PATH}[2].gpu: is not known; use leafType, vc, minMembers",
        f"{_PATH}[3]: must be a mapping, not 4; for example {{vc: shared}}",
        f"{_PATH}[4]: must say what differs; for example {{vc: shared}}",
    ]


def test_form_that_pods_cannot_take_is_refused_with_the_reason() -> None:
    assert _problems("[{members: 4, leafCells: 4}]") == [
        f"{_PATH}[0].members: the number of pods is that of their workload: list it on a "
        "suspended, indexed Job, or use minMembers to start with fewer",
        f"{_PATH}[0].leafCells: the devices that a pod requests never change: submit another "
        "workload instead",
    ]


def test_repeated_alternative_is_refused() -> None:
    assert _problems("[{vc: a}, {vc: b}, {vc: a}]") == [f'{_PATH}[2]: repeats "{_PATH}[0]"']


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("vc: shared", "must be a list such as"),
        ("[]", "must be a list such as"),
        ("[{vc: shared", "not valid YAML"),
        ("[" + "{vc: a}," * 9 + "]", "must list at most 8 alternatives"),
        ("[" + " " * 4096 + "]", "must have at most 4096 characters"),
    ],
    ids=["a mapping", "empty", "not YAML", "too many", "too long"],
)
def test_text_that_is_no_list_of_alternatives_is_refused(text: str, problem: str) -> None:
    (told,) = _problems(text)
    assert told.startswith(f"{_PATH}: ")
    assert problem in told


def test_annotation_that_was_not_checked_counts_as_none() -> None:
    assert read_alternatives("[{gpu: V100}]") == ()
    assert read_alternatives("[{vc: shared}]") == (Alternative(vc=_SHARED),)


def test_alternative_changes_only_what_it_names() -> None:
    asked = GangTerms(vc=VcName("vision"), leaf_type=LeafType("A100"))
    other = Alternative(vc=_SHARED, min_members=2)

    assert all_terms(asked, [Alternative(leaf_type=_V100), other]) == (
        asked,
        GangTerms(vc=VcName("vision"), leaf_type=_V100),
        GangTerms(vc=_SHARED, leaf_type=LeafType("A100"), gang_min=2),
    )


def test_alternative_says_what_differs() -> None:
    suggested = Alternative(members=4, leaf_cells=2)
    assert str(Alternative(leaf_type=_V100, vc=_SHARED)) == "leaf type V100, VC shared"
    assert str(Alternative(min_members=1)) == "at least 1 member"
    assert str(suggested) == "4 members, 2 leaf cells for each member"
