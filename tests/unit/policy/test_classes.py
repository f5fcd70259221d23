"""Classes: their order, and what a pod that names one gets."""

import pytest

from policy.classes import NO_CLASSES
from policy.errors import RequestError
from policy.submission import ClassName
from tests.support.policy.documents import CLASSES, OPPO, PROD, TEST

OTHER = ClassName("other")


@pytest.mark.parametrize(
    ("name", "rank", "cell_priority", "is_high"),
    [
        (PROD, 0, 100, True),
        (TEST, 1, 10, True),
        (OPPO, 2, -1, False),
        (OTHER, None, None, False),
    ],
)
def test_what_a_class_is(
    name: ClassName,
    rank: int | None,
    cell_priority: int | None,
    is_high: bool,
) -> None:
    assert CLASSES.rank(name) == rank
    assert CLASSES.cell_priority(name) == cell_priority
    assert CLASSES.is_high(name) is is_high


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        (PROD, TEST, 1),
        (TEST, PROD, -1),
        (TEST, TEST, 0),
        (OTHER, OTHER, 0),
        (OTHER, PROD, None),
        (PROD, OTHER, None),
    ],
)
def test_classes_are_compared_by_their_place(
    left: ClassName, right: ClassName, order: int | None
) -> None:
    assert CLASSES.compare(left, right) == order
    assert CLASSES.is_lower(left, right) is (order == -1)


@pytest.mark.parametrize(
    ("named", "got"), [("prod", PROD), ("", TEST), (None, TEST)], ids=["named", "empty", "none"]
)
def test_a_pod_gets_the_class_it_names_or_the_default(named: str | None, got: ClassName) -> None:
    assert CLASSES.resolve(named, path="spec.priorityClassName") == got


def test_a_class_that_is_not_listed_is_refused() -> None:
    with pytest.raises(RequestError) as raised:
        CLASSES.resolve("other", path="spec.priorityClassName")
    assert str(raised.value) == (
        'spec.priorityClassName: class "other" is not in the Classes document; '
        "its classes are prod, test, oppo"
    )


@pytest.mark.parametrize(("named", "got"), [("other", OTHER), (None, "")], ids=["named", "none"])
def test_without_a_classes_document_every_name_passes(named: str | None, got: str) -> None:
    assert NO_CLASSES.resolve(named, path="spec.priorityClassName") == got
    assert NO_CLASSES.is_lower(OPPO, PROD) is False
