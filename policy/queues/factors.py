"""The factors of a rank: one table, from which documents are checked, ranked and documented.

Each factor is a number from 0 to 1, without unit. A level's `worth` says how many seconds of
waiting the number 1 is worth.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SOON_SECONDS: Final = 86_400.0
"""A wished start that is later than this gives no rank."""


class FactorName(StrEnum):
    """The factors, by the names that documents use."""

    CLASS = "class"
    USER_LEVEL = "userLevel"
    GROUP_LEVEL = "groupLevel"
    FAIR_SHARE = "fairShare"
    SHORT_RUN = "shortRun"
    SMALL_GANG = "smallGang"
    ASKED = "asked"
    FILL = "fill"
    START_BY = "startBy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One factor: what 0 and 1 mean, and how the number is found."""

    name: FactorName
    at_zero: str
    at_one: str
    value: str
    """How the number is found."""


FACTORS: Final[Mapping[FactorName, Factor]] = {
    factor.name: factor
    for factor in (
        Factor(
            name=FactorName.CLASS,
            at_zero="the lowest class",
            at_one="the highest class",
            value="The class's place in the Classes document, counted from the lowest, ÷ (number "
            "of classes - 1). Without a Classes document: log₂(priority + 2) ÷ log₂(1002), which "
            "is 0 for opportunistic gangs.",
        ),
        Factor(
            name=FactorName.USER_LEVEL,
            at_zero="a user whom `userLevels` does not list",
            at_one="a user of the first of the `userLevels`",
            value="The level's place in `userLevels`, counted from the lowest, ÷ number of levels.",
        ),
        Factor(
            name=FactorName.GROUP_LEVEL,
            at_zero="a charged group that `groupLevels` does not list",
            at_one="a charged group of the first of the `groupLevels`",
            value="The level's place in `groupLevels`, counted from the lowest, ÷ number of "
            "levels.",
        ),
        Factor(
            name=FactorName.FAIR_SHARE,
            at_zero="twice the fair share of recent use, or more",
            at_one="no recent use; 0.5 is exactly the fair share",
            value="1 - used share ÷ (2 · entitled share), at least 0: the mean of the charged "
            "group and of the user. The used share is recent use ÷ what the cluster offers in that "
            "time; use counts half after each `fairShare.halfLife`. The groups with recent use "
            "share the cluster by `fairShare.weights`, and the users of a group share alike.",
        ),
        Factor(
            name=FactorName.SHORT_RUN,
            at_zero="an expected run of `runTime.cap` or longer, or an unknown one",
            at_one="an expected run of no time",
            value="1 - min(expected run time, cap) ÷ cap. With `runTime.unknown: asked` a gang "
            "without history is expected to run for its limit.",
        ),
        Factor(
            name=FactorName.SMALL_GANG,
            at_zero="a gang as large as its VC's promise",
            at_one="a gang of one leaf cell",
            value="1 - log₂(leaf cells of the gang) ÷ log₂(leaf cells promised to its VC), from 0 "
            "to 1. A VC without a promise counts with the leaf cells of the cluster.",
        ),
        Factor(
            name=FactorName.ASKED,
            at_zero="a limit (`activeDeadlineSeconds`) of `runTime.cap` or longer, or none",
            at_one="a limit of no time",
            value="1 - min(limit, cap) ÷ cap.",
        ),
        Factor(
            name=FactorName.FILL,
            at_zero="a VC that uses nothing of its promise",
            at_one="a VC that uses all of its promise",
            value="Leaf cells that gangs of the VC use ÷ leaf cells promised to it, at most 1; 0 "
            "for a VC without a promise.",
        ),
        Factor(
            name=FactorName.START_BY,
            at_zero="no wished start (`cellgate.io/start-by`), or one a day or more after the gang "
            "asked",
            at_one="a wished start at once, by an owner of the first level",
            value="(1 - min(wished start - when it asked, 24 h) ÷ 24 h) · what its owner is worth: "
            "the higher one of `userLevel` and `groupLevel`, 1 without `userLevels` and "
            "`groupLevels`. It does not change while the gang waits.",
        ),
    )
}
