"""Label selectors."""

import pytest

from kube.read.label_selectors import read_selector

LABELS = {"app": "web", "tier": "front"}


def _expression(operator: str, *values: str, key: str = "app") -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        (_expression("In", "web", "db"), True),
        (_expression("In", "db"), False),
        (_expression("NotIn", "db"), True),
        (_expression("NotIn", "db", key="none"), True),
        (_expression("NotIn", "web"), False),
        (_expression("Exists"), True),
        (_expression("Exists", key="none"), False),
        (_expression("DoesNotExist", key="none"), True),
        (_expression("DoesNotExist"), False),
        (_expression("Like", "web"), False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": 3}]}, False),
    ],
)
def test_a_selector_selects_by_all_its_requirements(selector: object, *, is_selected: bool) -> None:
    assert read_selector(selector).matches(LABELS) is is_selected
