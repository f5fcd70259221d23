"""The ledger's words: which limits say something about a charge, and how they are told."""

from policy.quotas.charge import build_exceeded, choose_applicable
from policy.quotas.limits import Measure, Scope
from policy.submission import GroupName, LeafType, UserName
from tests.support.state.charges import ALICE, ALICE_IN_VISION, VISION, a_charge, at_most


def test_limits_of_others_and_of_other_kinds_are_left_out() -> None:
    applicable = [
        at_most(1, Measure.LEAF_CELLS, ALICE),
        at_most(1, Measure.GANGS, VISION),
        at_most(1, Measure.HOURS_WEEK, ALICE_IN_VISION),
        at_most(1, Measure.LEAF_CELLS_OF_TYPE, leaf_type=LeafType("A100")),
    ]
    others = [
        at_most(1, Measure.LEAF_CELLS, Scope(UserName("bob"))),
        at_most(1, Measure.LEAF_CELLS, Scope(UserName("alice"), GroupName("nlp"))),
        at_most(1, Measure.LEAF_CELLS_HIGH),
        at_most(1, Measure.LEAF_CELLS_OF_TYPE, leaf_type=LeafType("V100")),
        at_most(1, Measure.LEAF_CELLS_OF_TYPE),
    ]
    charge = a_charge(is_high=False)
    assert choose_applicable(charge, [*applicable, *others]) == applicable


def test_a_charge_without_group_counts_for_its_user_only() -> None:
    assert a_charge(group=None).scopes == (ALICE,)


def test_an_exceeded_limit_names_the_thing_and_the_numbers() -> None:
    limit = at_most(16, Measure.LEAF_CELLS_OF_TYPE, VISION, leaf_type=LeafType("A100"))
    exceeded = build_exceeded(limit, charge=a_charge(), used=14)
    assert str(exceeded) == (
        "group vision: leaf cells of type A100: 14 used, 4 asked for, at most 16"
    )
    member = build_exceeded(at_most(2, Measure.GANGS, ALICE_IN_VISION), charge=a_charge(), used=2)
    assert str(member) == "user alice in group vision: gangs: 2 used, 1 asked for, at most 2"
