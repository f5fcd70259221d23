"""Reading JSON of unknown shape: every problem is noted where it stands, and reading goes on."""

from typing import Any

import pytest

from kube.values.fields import Fields, Problems
from kube.values.texts import NAMESPACE
from policy.errors import RequestError


def _fields(values: object) -> Fields:
    return Fields(values, key="", parent=None, problems=Problems())


def _told(fields: Fields) -> list[str]:
    return [str(problem) for problem in fields.problems.found]


def test_fields_of_the_right_type_are_read() -> None:
    fields = _fields(
        {
            "name": "bert",
            "priority": 7,
            "cells": [0, 1],
            "labels": {"a": "b", "size": "4"},
            "items": [{"name": "x"}, {}],
        }
    )
    read: list[Any] = [
        fields.text("name", NAMESPACE),
        fields.required_text("name", NAMESPACE),
        fields.number("priority", minimum=0, maximum=9),
        fields.numbers("cells", minimum=0, maximum=9),
        dict(fields.mapping("labels")),
        fields.texts("labels").number_text("size", maximum=9),
        [item.text("name") for item in fields.items("items")],
    ]
    assert read == ["bert", "bert", 7, (0, 1), {"a": "b", "size": "4"}, 4, ["x", ""]]
    assert _told(fields) == []


def test_missing_and_null_fields_are_empty_and_no_problem() -> None:
    fields = _fields({"name": None, "items": None, "labels": None, "cells": None})
    read: list[Any] = [
        fields.text("name"),
        fields.number("priority", minimum=0, maximum=9),
        fields.numbers("cells", minimum=0, maximum=9),
        dict(fields.mapping("labels")),
        dict(fields.texts("labels").values),
        fields.items("items"),
        fields.fields("spec").text("name"),
    ]
    assert read == ["", None, (), {}, {}, [], ""]
    assert _told(fields) == []


def test_fields_of_the_wrong_type_are_noted_with_their_paths() -> None:
    fields = _fields(
        {
            "name": 8,
            "long": "x" * 70,
            "flag": True,
            "half": 0.5,
            "big": 10,
            "labels": {"a": 1, "app": "x", 8: "y"},
            "sizes": {"size": "x", "none": "0"},
            "items": "abc",
            "list": [{}, 3, {"deep": []}],
            "cells": [0, "1", 2, -1],
            "cell": 4,
        }
    )
    fields.text("name")
    fields.text("long", NAMESPACE)
    fields.required_text("nowhere", NAMESPACE)
    for key in ("flag", "half", "big"):
        fields.number(key, minimum=0, maximum=9)
    texts = fields.texts("labels")
    sizes = fields.texts("sizes")
    sizes.number_text("size", maximum=9)
    sizes.number_text("none", maximum=9)
    fields.items("items")
    fields.items("list")[2].mapping("deep")
    fields.numbers("cells", minimum=0, maximum=9)
    fields.numbers("cell", minimum=0, maximum=9)
    assert dict(texts.values) == {"app": "x"}
    assert _told(fields) == [
        "name: must be a string, not 8",
        "long: must be at most 63 characters, not 70",
        "nowhere: is required",
        "flag: must be a whole number from 0 to 9, not true",
        "half: must be a whole number from 0 to 9, not 0.5",
        "big: must be a whole number from 0 to 9, not 10",
        "labels[a]: must be a string, not 1",
        "labels: must have strings as keys, not 8",
        'sizes[size]: must be a whole number from 1 to 9, not "x"',
        'sizes[none]: must be a whole number from 1 to 9, not "0"',
        'items: must be a list, not "abc"',
        "list[1]: must be a mapping, not 3",
        "list[2].deep: must be a mapping, not a list",
        'cells[1]: must be a whole number from 0 to 9, not "1"',
        "cells[3]: must be a whole number from 0 to 9, not -1",
        "cell: must be a list, not 4",
    ]


@pytest.mark.parametrize("value", [[], "x", 8, True], ids=["list", "text", "number", "truth"])
def test_what_is_no_object_is_read_as_an_empty_one(value: object) -> None:
    fields = _fields(value)
    assert fields.text("name") == ""
    assert len(fields.problems.found) == 1


def test_a_long_key_is_cut_in_its_path() -> None:
    fields = _fields({"labels": {"k" * 10_000: 1}})
    fields.texts("labels")
    assert _told(fields) == [f"labels[{'k' * 320}]: must be a string, not 1"]


def test_check_raises_everything_found_and_only_then() -> None:
    problems = Problems()
    problems.check()
    problems.add("a", "is wrong")
    problems.add("b", "is wrong too")
    with pytest.raises(RequestError, match=r"^a: is wrong; b: is wrong too$"):
        problems.check()


def test_only_so_many_problems_are_told() -> None:
    problems = Problems()
    for number in range(1_000):
        problems.add(f"labels[{number}]", "is wrong")
    with pytest.raises(RequestError) as caught:
        problems.check()
    assert len(caught.value.problems) == 101
    assert str(caught.value.problems[-1]) == "and 900 more problems"


def test_an_endless_list_is_not_read() -> None:
    fields = _fields({"containers": [{}] * 1_001})
    assert fields.items("containers") == []
    assert _told(fields) == ["containers: must have at most 1000 entries, not 1001"]
