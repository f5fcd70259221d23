"""Who may change which policy document."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from policy.errors import RequestError
from policy.identity.ownership import Editor, check_other_change, check_quotas_change
from policy.quotas.limits import Measure
from policy.quotas.quota_table import Allowance, QuotaGroup, QuotaTable
from policy.submission import GroupName, LeafType, UserName

CAROL = Editor(user="carol")
VISION = QuotaGroup(
    name=GroupName("vision"),
    admins=(UserName("carol"),),
    allowance=Allowance(
        most={Measure.LEAF_CELLS: 64, Measure.GANGS: 5}, by_leaf_type={LeafType("A100"): 16}
    ),
)
NLP = QuotaGroup(name=GroupName("nlp"), admins=(UserName("dan"),))
IN_FORCE = QuotaTable([VISION, NLP])


def _refusal(
    before: tuple[QuotaGroup, ...],
    after: tuple[QuotaGroup, ...],
    editor: Editor = CAROL,
    *,
    in_force: QuotaTable = IN_FORCE,
    members: Mapping[str, tuple[GroupName, ...]] = MappingProxyType({}),
) -> list[str]:
    try:
        check_quotas_change(
            editor,
            before=before,
            after=after,
            in_force=in_force,
            groups_of=lambda user: members.get(user, ()),
        )
    except RequestError as exc:
        return [str(problem) for problem in exc.problems]
    return []


def test_an_admin_shares_out_what_the_group_has() -> None:
    users = {UserName("alice"): Allowance(most={Measure.LEAF_CELLS: 20})}
    assert _refusal((VISION,), (replace(VISION, users=users),)) == []


def test_an_admin_may_give_up_but_not_grant_what_the_group_has() -> None:
    less = Allowance(
        most={Measure.LEAF_CELLS: 60, Measure.GANGS: 5}, by_leaf_type={LeafType("A100"): 1}
    )
    assert _refusal((VISION,), (replace(VISION, allowance=less),)) == []
    for more in (
        Allowance(most={Measure.LEAF_CELLS: 65, Measure.GANGS: 5}),
        Allowance(most={Measure.LEAF_CELLS: 64}, by_leaf_type={LeafType("A100"): 16}),
        Allowance(
            most={Measure.LEAF_CELLS: 64, Measure.GANGS: 5}, by_leaf_type={LeafType("A100"): 17}
        ),
    ):
        assert _refusal((VISION,), (replace(VISION, allowance=more, over="queue"),)) == [
            "groups[0].over: only a policy admin may change fail to queue",
            "groups[0].limits: only a policy admin may raise or remove a limit of the group itself",
        ]


@pytest.mark.parametrize(
    ("before", "after", "problems"),
    [
        (
            (NLP,),
            (replace(NLP, over="queue"),),
            ['groups: "carol" is an admin of group vision and may not change the quotas of '
             "group nlp"],
        ),
        (
            (VISION, NLP),
            (NLP, VISION),
            ["groups: only a policy admin may change the order of groups"],
        ),
        (
            (VISION,),
            (VISION, NLP),
            ['groups: "carol" is an admin of group vision and may not change the quotas of '
             "group nlp"],
        ),
        ((VISION,), (), ["groups: only a policy admin may remove group vision"]),
    ],
    ids=["another group's", "moves a group", "adds another group", "deletes the own"],
)  # fmt: skip
def test_an_admin_of_a_group_is_no_admin_of_others(
    before: tuple[QuotaGroup, ...], after: tuple[QuotaGroup, ...], problems: list[str]
) -> None:
    assert _refusal(before, after) == problems


def test_an_admin_hears_nothing_of_groups_that_she_leaves_alone() -> None:
    users = {UserName("alice"): Allowance(most={Measure.LEAF_CELLS: 20})}
    assert _refusal((NLP, VISION), (NLP, replace(VISION, users=users))) == []
    more = replace(VISION, over="queue")
    assert _refusal((NLP, VISION), (NLP, more)) == [
        "groups[1].over: only a policy admin may change fail to queue"
    ]


def test_nobody_else_may_change_quotas() -> None:
    assert _refusal((VISION,), (VISION,), Editor(user="mallory", groups=("vision",))) == [
        'groups: "mallory" is neither a policy admin nor an admin of these groups'
    ]


def test_a_groups_admin_may_change_no_other_document() -> None:
    check_other_change(Editor(user="olga"), in_force=IN_FORCE, is_shaping=False)
    with pytest.raises(RequestError) as raised:
        check_other_change(CAROL, in_force=IN_FORCE, is_shaping=False)
    assert str(raised.value) == (
        '"carol" is an admin of group vision and may change no other document than its quotas'
    )


def test_only_policy_admins_change_what_pods_of_others_get() -> None:
    with pytest.raises(RequestError) as raised:
        check_other_change(Editor(user="olga"), in_force=IN_FORCE, is_shaping=True)
    told = 'only a policy admin may change the Shaping document; "olga" is none'
    assert str(raised.value) == told


def test_an_admin_charges_nobody_for_whom_another_group_pays() -> None:
    """Whoever is listed first is charged there: with a limit of 0 the other group would be lost."""
    bob = {UserName("bob"): Allowance(most={Measure.LEAF_CELLS: 0})}
    taking, listing_bob = replace(VISION, users=bob), replace(NLP, users=bob)
    refused = ['groups[0].users: only a policy admin may list "bob", who is charged to group nlp']
    assert _refusal((VISION,), (taking,), in_force=QuotaTable([VISION, listing_bob])) == refused
    assert _refusal((VISION,), (taking,), members={"bob": (GroupName("nlp"),)}) == refused
    assert _refusal((VISION,), (taking,), in_force=QuotaTable([listing_bob, VISION])) == []
    assert _refusal((taking,), (taking,), in_force=QuotaTable([taking, listing_bob])) == []
