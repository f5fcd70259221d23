"""Patches: what is written, and that writing it twice changes nothing."""

from typing import Any

import pytest

from kube.admission import patches
from policy.submission import ClassName

OPPO = ClassName("oppo")


@pytest.mark.parametrize(
    ("spec", "patch"),
    [
        ({"priorityClassName": "oppo", "priority": 100}, []),
        (
            {"priorityClassName": "prod", "priority": 9, "preemptionPolicy": "Never"},
            [
                {"op": "add", "path": "/spec/priorityClassName", "value": "oppo"},
                {"op": "remove", "path": "/spec/priority"},
                {"op": "remove", "path": "/spec/preemptionPolicy"},
            ],
        ),
        ({}, [{"op": "add", "path": "/spec/priorityClassName", "value": "oppo"}]),
    ],
    ids=["has it", "has another", "has none"],
)
def test_a_new_class_takes_the_computed_priority_away(
    spec: dict[str, Any], patch: list[dict[str, Any]]
) -> None:
    assert patches.class_patch({"spec": spec}, OPPO) == patch


def test_without_classes_a_pod_without_a_class_is_left_alone() -> None:
    assert patches.class_patch({"spec": {"priority": 0}}, ClassName("")) == []


@pytest.mark.parametrize(
    ("metadata", "patch"),
    [
        (
            {},
            [{"op": "add", "path": "/metadata/annotations", "value": {"a/b~c": "1"}}],
        ),
        (
            {"annotations": {"x": "y"}},
            [{"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "1"}],
        ),
        ({"annotations": {"a/b~c": "1"}}, []),
    ],
    ids=["none yet", "beside others", "there already"],
)
def test_annotations_are_added(metadata: dict[str, Any], patch: list[dict[str, Any]]) -> None:
    assert patches.annotations_patch({"metadata": metadata}, {"a/b~c": "1"}) == patch


@pytest.mark.parametrize("annotations", [None, 1, "a", ["a"], {}])
def test_nothing_is_taken_away_from_what_has_no_annotations(annotations: object) -> None:
    assert patches.unmark_patch({"metadata": {"annotations": annotations}}, ["a"]) == []


@pytest.mark.parametrize(
    ("spec", "changes"),
    [({}, True), ({"schedulerName": "default-scheduler"}, True), ({"schedulerName": "x"}, False)],
    ids=["none", "the default", "one of its own"],
)
def test_only_pods_without_a_scheduler_of_their_own_come_to_ours(
    spec: dict[str, Any], changes: bool
) -> None:
    patch = patches.scheduler_patch({"spec": spec}, "ours")
    expected = [{"op": "add", "path": "/spec/schedulerName", "value": "ours"}]
    assert patch == (expected if changes else [])
