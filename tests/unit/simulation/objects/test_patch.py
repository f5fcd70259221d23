"""Patches, beyond what the contract suite sends."""

from typing import Any

import pytest

from simulation.objects.fields import Object
from simulation.objects.patch import PatchError, json_patch, merge_patch, strategic_merge_patch
from simulation.objects.status import ApiError


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/list/1", "value": 9}], {"list": [1, 9, 2], "map": {"a": 1}}),
        ([{"op": "add", "path": "/list/-", "value": 9}], {"list": [1, 2, 9], "map": {"a": 1}}),
        ([{"op": "remove", "path": "/list/0"}], {"list": [2], "map": {"a": 1}}),
        ([{"op": "move", "from": "/map/a", "path": "/b"}], {"list": [1, 2], "map": {}, "b": 1}),
        (
            [
                {"op": "copy", "from": "/list", "path": "/map/l"},
                {"op": "remove", "path": "/list/0"},
            ],
            {"list": [2], "map": {"a": 1, "l": [1, 2]}},
        ),
        ([{"op": "replace", "path": "", "value": {"new": 1}}], {"new": 1}),
        (
            [{"op": "add", "path": "/map/x~1y~0z", "value": 1}],
            {"list": [1, 2], "map": {"a": 1, "x/y~z": 1}},
        ),
    ],
    ids=["insert", "append", "remove", "move", "copy", "whole document", "escapes"],
)
def test_json_patch(operations: list[Object], expected: Object) -> None:
    document = {"list": [1, 2], "map": {"a": 1}}
    assert json_patch(document, operations) == expected
    assert document == {"list": [1, 2], "map": {"a": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/list/3", "value": 9},
        {"op": "remove", "path": "/list/2"},
        {"op": "replace", "path": "/list/x", "value": 9},
        {"op": "replace", "path": "/none", "value": 9},
        {"op": "add", "path": "no-pointer", "value": 9},
        {"op": "add", "path": "/list"},
        {"op": "other", "path": "/list"},
        {"path": "/list"},
    ],
)
def test_json_patch_that_does_not_fit(operation: Object) -> None:
    with pytest.raises(PatchError):
        json_patch({"list": [1, 2]}, [operation])


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"a": {"b": None}}, {"a": {}, "l": [1]}),
        ({"a": None, "l": [2]}, {"l": [2]}),
        ({"new": {"x": None, "y": 1}}, {"a": {"b": 1}, "l": [1], "new": {"y": 1}}),
        ({"a": "text"}, {"a": "text", "l": [1]}),
    ],
)
def test_merge_patch(patch: Object, expected: Object) -> None:
    assert merge_patch({"a": {"b": 1}, "l": [1]}, patch) == expected


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([{"type": "A", "status": "False"}], [{"type": "A", "status": "False", "x": 1}]),
        ([{"type": "B"}], [{"type": "A", "status": "True", "x": 1}, {"type": "B"}]),
        ([{"type": "A", "$patch": "delete"}], []),
        ([{"$patch": "replace"}, {"type": "C"}], [{"type": "C"}]),
    ],
    ids=["merge", "append", "delete", "replace"],
)
def test_strategic_patch_of_a_list_with_a_key(patch: list[Any], expected: list[Any]) -> None:
    document = {"status": {"conditions": [{"type": "A", "status": "True", "x": 1}]}}
    patched = strategic_merge_patch(document, {"status": {"conditions": patch}})
    assert patched["status"]["conditions"] == expected


def test_strategic_patch_replaces_a_list_without_a_key() -> None:
    document = {"spec": {"tolerations": [{"key": "a"}]}}
    patched = strategic_merge_patch(document, {"spec": {"tolerations": [{"key": "b"}]}})
    assert patched == {"spec": {"tolerations": [{"key": "b"}]}}


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"finalizers": ["a"]}},
        {"spec": {"$setElementOrder/containers": [{"name": "a"}]}},
    ],
    ids=["unknown merge", "unknown directive"],
)
def test_strategic_patch_that_is_not_simulated_is_refused(patch: Object) -> None:
    with pytest.raises(ApiError) as caught:
        strategic_merge_patch({"metadata": {}, "spec": {}}, patch)
    assert caught.value.code == 501
