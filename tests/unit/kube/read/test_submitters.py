"""The submitter's stamp."""

import pytest

from kube import marks
from kube.read.submitters import format_submitter_groups, read_submitter, read_submitter_groups
from kube.values.fields import Fields, Problems


def _annotations(**values: str) -> Fields:
    keys = {"user": marks.SUBMITTER_ANNOTATION, "groups": marks.SUBMITTER_GROUPS_ANNOTATION}
    texts = {keys[name]: text for name, text in values.items()}
    pod = Fields({"annotations": texts}, key="", parent=None, problems=Problems())
    return pod.texts("annotations")


def test_a_stamp_is_read() -> None:
    annotations = _annotations(user="alice@example.com", groups='["system:authenticated","vision"]')
    assert read_submitter(annotations) == "alice@example.com"
    assert read_submitter_groups(annotations) == ("system:authenticated", "vision")
    assert annotations.problems.found == []


def test_without_a_stamp_nobody_is_known() -> None:
    annotations = _annotations()
    assert (read_submitter(annotations), read_submitter_groups(annotations)) == (None, ())


def test_equal_groups_give_equal_texts() -> None:
    assert format_submitter_groups(["b", "a", "b"]) == '["a","b"]'
    assert format_submitter_groups({"a", "b"}) == '["a","b"]'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("vision", 'must be a JSON list of group names, not "vision"'),
        ("{}", "must be a JSON list of group names, not a mapping"),
        ("[1]", "must be a JSON list of group names, not of 1"),
        ('[""]', 'must be a JSON list of group names, not of ""'),
        ('["a\\n"]', 'each name must be text without control characters, not "a\\n"'),
        ("[" * 99_999, 'must be a JSON list of group names, not "' + "[" * 59 + '…"'),
    ],
    ids=lambda text: text[:12],
)
def test_broken_groups_are_noted(text: str, problem: str) -> None:
    annotations = _annotations(groups=text)
    assert read_submitter_groups(annotations) == ()
    assert [str(found) for found in annotations.problems.found] == [
        f"annotations[cellgate.io/submitter-groups]: {problem}"
    ]


def test_a_broken_name_is_noted() -> None:
    annotations = _annotations(user="eve\0")
    assert read_submitter(annotations) is None
    assert [str(found) for found in annotations.problems.found] == [
        "annotations[cellgate.io/submitter]: "
        'must be text without control characters, not "eve\\x00"'
    ]
