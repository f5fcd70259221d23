"""Sentences about variants name what their leaf cells are needed for."""

from extender.queue.variants.model import Change, ChangeKind, StartKind, Variant, Variants
from extender.queue.variants.sentences import variant_sentence
from policy.submission import GangKey


def test_an_advance_reservation_is_called_so() -> None:
    one = Variant(
        change=Change(kind=ChangeKind.LIMIT, before="", after="60"),
        start=StartKind.NOW,
        reservation=GangKey("", "summer-school"),
        until=9000.0,
    )
    assert variant_sentence(one, Variants(at=0.0), show=str, name=str) == (
        "with activeDeadlineSeconds of at most 60 it starts now, and ends before 9000.0, when its "
        "leaf cells are needed for the advance reservation summer-school"
    )
