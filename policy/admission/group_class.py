"""The class of a PodGroup before its pods exist: the lowest class that they could get. Pure.

The class of a PodGroup can never change, and its pods must have it. What they ask for is not known
yet, but rules and quotas may depend on it. So the PodGroup gets the lowest class that pods of any
size would get; a gang that is granted a higher one then has that as its effective class. A PodGroup
that says what each pod asks for is decided for that alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from policy.admission.gang_decision import LEAF_CELLS_MARK, GangDecision
from policy.classes import Classes
from policy.rules.decision import Outcome, class_text
from policy.wording import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDecision:
    """The decision that a PodGroup gets, and what its author is told beside it."""

    decision: GangDecision
    notes: tuple[str, ...] = ()
    """Why it is not the decision about pods with one leaf cell each; empty if it is."""


def choose_lowest(
    decisions: Mapping[int, GangDecision], *, name: str, classes: Classes
) -> GroupDecision:
    """Choose among decisions by the leaf cells of each pod; there is at least one.

    What would be refused does not count, unless all would be: no pod gets a class by that.
    """
    first = next(iter(decisions))
    possible = {each: one for each, one in decisions.items() if one.outcome is not Outcome.REFUSED}
    if not possible:
        return GroupDecision(decision=decisions[first])
    first = lowest = next(iter(possible))
    for each, one in possible.items():
        if classes.is_lower(one.final_class, possible[lowest].final_class):
            lowest = each
    highest = possible[first].final_class
    if possible[lowest].final_class == highest:
        return GroupDecision(decision=possible[first])
    would = f"{class_text(highest)} with {first} each"
    would += f", {class_text(possible[lowest].final_class)} with {lowest}"
    notes = (
        f"the class of PodGroup {quote(name)} depends on the leaf cells of its pods: {would}; it "
        "gets the lower one, and its gang the one that its pods are granted",
        "to have a PodGroup decided for N leaf cells in each pod, create it with the annotation "
        f'{LEAF_CELLS_MARK}: "N"',
    )
    return GroupDecision(decision=possible[lowest], notes=notes)
