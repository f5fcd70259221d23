"""The Quotas document: every problem at once, and what it means."""

import pytest

from policy.documents.quotas_document import QuotasDocument
from policy.errors import RequestError, SpecError
from policy.parser import DocumentKind, parse_document
from policy.quotas.limits import Limit, Measure, Scope
from policy.quotas.quota_table import QuotaTable
from policy.store import PolicyText, build_policy
from policy.submission import GroupName, LeafType, UserName
from tests.support.policy.documents import HEAD, classes

ALICE, BOB, ZOE = UserName("alice"), UserName("bob"), UserName("zoe")
VISION, NLP = GroupName("vision"), GroupName("nlp")
SAMPLE = f"""{HEAD}Quotas
groups:
- name: vision
  admins: [carol]
  limits:
    leafCells: 64
    leafCellsHigh: 32
    gangs: 40
    leafCellHours: {{day: 500, month: 9000}}
    byLeafType: {{A100: 16}}
  over: oppo
  users:
  - {{name: alice, limits: {{leafCells: 16, leafCellsHigh: 8}}}}
  eachUser: {{limits: {{leafCells: 8}}}}
- {{name: nlp, over: queue, users: [{{name: alice}}, {{name: bob}}]}}
"""


def quotas(text: str, source: str = "cm/quotas") -> PolicyText:
    return PolicyText(kind=DocumentKind.QUOTAS, source=source, text=text)


def table_of(text: str) -> QuotaTable:
    document = parse_document(text, kind=DocumentKind.QUOTAS)
    assert isinstance(document, QuotasDocument)
    return QuotaTable(document.build())


def _problems(*texts: PolicyText) -> list[str]:
    with pytest.raises(SpecError) as raised:
        build_policy(texts)
    return [str(problem) for problem in raised.value.problems]


def _paying(user: UserName, *groups: GroupName, named: GroupName | None = None) -> str | None:
    group = table_of(SAMPLE).find(user, groups, named=named, path="label")
    return group.name if group else None


def test_limits_of_user_and_group_apply_together() -> None:
    group = table_of(SAMPLE).group(VISION)
    assert group is not None
    own, shared = Scope(ALICE, VISION), Scope(None, VISION)
    of_group = (
        Limit(scope=shared, measure=Measure.LEAF_CELLS, most=64),
        Limit(scope=shared, measure=Measure.LEAF_CELLS_HIGH, most=32),
        Limit(scope=shared, measure=Measure.GANGS, most=40),
        Limit(scope=shared, measure=Measure.HOURS_DAY, most=500),
        Limit(scope=shared, measure=Measure.HOURS_MONTH, most=9000),
        Limit(
            scope=shared,
            measure=Measure.LEAF_CELLS_OF_TYPE,
            most=16,
            leaf_type=LeafType("A100"),
        ),
    )
    assert group.limits(ALICE) == (
        Limit(scope=own, measure=Measure.LEAF_CELLS, most=16),
        Limit(scope=own, measure=Measure.LEAF_CELLS_HIGH, most=8),
        *of_group,
    )
    each = Limit(scope=Scope(ZOE, VISION), measure=Measure.LEAF_CELLS, most=8)
    assert group.limits(ZOE) == (each, *of_group)


def test_the_group_that_pays_is_the_named_one_else_the_first_that_lists_the_user() -> None:
    assert _paying(ALICE) == "vision"
    assert _paying(ALICE, named=NLP) == "nlp"
    assert _paying(BOB) == "nlp"
    assert _paying(BOB, VISION) == "nlp"
    assert _paying(BOB, VISION, named=VISION) == "vision"
    assert _paying(ZOE) is None
    assert _paying(ZOE, VISION) == "vision"


@pytest.mark.parametrize(
    ("user", "named", "message"),
    [
        (BOB, VISION, '"vision" is not a quota group of yours; your groups with quotas are "nlp"'),
        (ZOE, VISION, '"vision" is not a quota group of yours; you have none'),
        (BOB, GroupName("x"), '"x" is not a quota group of yours; your groups with quotas are "n'),
    ],
)
def test_a_group_that_is_not_the_submitters_cannot_be_named(
    user: UserName, named: GroupName, message: str
) -> None:
    with pytest.raises(RequestError) as raised:
        _paying(user, named=named)
    assert str(raised.value).startswith(f"label: {message}")


def test_without_quotas_a_named_group_means_nothing() -> None:
    assert QuotaTable(()).find(ALICE, (), named=NLP, path="label") is None


def test_all_problems_are_told_at_once() -> None:
    text = f"""{HEAD}Quotas
groups:
- name: vision
  admins: carol
  limits: {{leafCells: -1, leafCellHours: {{day: soon, year: 5}}, byLeafType: {{A100: 1.5}}}}
  over: Nowhere!
- name: " vision"
  limits: {{leafCells: 10, gangs: 3, leafCellHours: {{day: 24}}, byLeafType: {{V100: 4}}}}
  users:
  - {{name: alice, limits: {{leafCells: 6, leafCellHours: {{day: 12}}, byLeafType: {{V100: 4}}}}}}
  - {{name: bob, limits: {{leafCells: 5, leafCellHours: {{day: 12.5}}, byLeafType: {{V100: 1}}}}}}
  - {{name: alice, limits: {{gangs: 3}}}}
  eachUser: {{limits: {{gangs: 4}}}}
- {{name: vision}}
"""
    assert _problems(quotas(text)) == [
        'cm/quotas: groups[0].admins: must be a list, not "carol"',
        "cm/quotas: groups[0].limits.leafCells: must be at least 0, not -1",
        "cm/quotas: groups[0].limits.leafCellHours.day: must be a number of hours from 0 to "
        '1000000000, not "soon"',
        "cm/quotas: groups[0].limits.leafCellHours.year: unknown key; known keys are day, week, "
        "month, total",
        "cm/quotas: groups[0].limits.byLeafType.A100: must be a whole number, not 1.5",
        'cm/quotas: groups[0].over: must be fail, queue or the name of a class: "Nowhere!" is not '
        "a Kubernetes name (lower-case letters, digits, - and ., a letter or digit at both ends)",
        'cm/quotas: groups[1].name: must be a name without spaces around it, not " vision"',
        "cm/quotas: groups[2].name: duplicate of groups[0].name",
        "cm/quotas: groups[1].users[2].name: duplicate of groups[1].users[0].name",
        "cm/quotas: groups[1].users: limits.leafCells of 2 users add up to 11, more than "
        "groups[1].limits.leafCells, which is 10",
        "cm/quotas: groups[1].eachUser.limits.gangs: is 4, more than groups[1].limits.gangs, "
        "which is 3",
        "cm/quotas: groups[1].users: limits.leafCellHours.day of 2 users add up to 24.5, more "
        "than groups[1].limits.leafCellHours.day, which is 24",
        "cm/quotas: groups[1].users: limits.byLeafType.V100 of 2 users add up to 5, more than "
        "groups[1].limits.byLeafType.V100, which is 4",
    ]


def test_users_may_have_together_exactly_what_their_group_has() -> None:
    text = f"""{HEAD}Quotas
groups:
- name: vision
  limits: {{leafCells: 16}}
  users: [{{name: a, limits: {{leafCells: 8}}}}, {{name: b, limits: {{leafCells: 8, gangs: 9}}}}]
"""
    assert len(build_policy([quotas(text)]).quotas.groups) == 1


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ("que", '"que" is not one of the classes prod, test, oppo; use fail, queue or a class'),
        ("prod", "prod is the highest class: no gang can be lowered to it"),
    ],
)
def test_the_class_over_quota_must_be_a_lower_one(over: str, problem: str) -> None:
    text = f"{HEAD}Quotas\ngroups: [{{name: vision, over: {over}}}]"
    assert _problems(quotas(text), classes()) == [f"cm/quotas: groups[0].over: {problem}"]


def test_a_group_has_quotas_in_one_document_only() -> None:
    text = f"{HEAD}Quotas\ngroups: [{{name: vision}}]"
    assert _problems(quotas(text, "cm/b"), quotas(text, "cm/a")) == [
        'cm/b: groups[0].name: group "vision" already has quotas in cm/a'
    ]


def test_there_may_be_a_document_for_each_group_looked_at_by_their_names() -> None:
    listing = "users: [{name: alice}]"
    policy = build_policy(
        [
            quotas(f"{HEAD}Quotas\ngroups: [{{name: second, {listing}}}]", "cm/b"),
            quotas(f"{HEAD}Quotas\ngroups: [{{name: first, {listing}}}]", "cm/a"),
        ]
    )
    paying = policy.quotas.find(ALICE, (), named=None, path="")
    assert paying is not None
    assert paying.name == "first"


def test_cpu_memory_and_a_total_are_limits_too() -> None:
    limits = "{cpu: 1.5k, memory: 512Gi, leafCellHours: {total: 1000}}"
    group = table_of(f"{HEAD}Quotas\ngroups: [{{name: vision, limits: {limits}}}]").group(VISION)
    assert group is not None
    assert {limit.measure: limit.most for limit in group.limits(ZOE)} == {
        Measure.HOURS_TOTAL: 1000,
        Measure.CPU_MILLIS: 1_500_000,
        Measure.MEMORY_BYTES: 512 * 2**30,
    }


def test_users_share_the_cpu_of_their_group() -> None:
    text = f"""{HEAD}Quotas
groups:
- name: vision
  limits: {{cpu: 8, memory: 1Ti, leafCellHours: {{total: 10}}}}
  users:
  - {{name: alice, limits: {{cpu: 5, memory: 600Gi}}}}
  - {{name: bob, limits: {{cpu: 3500m, memory: many}}}}
  eachUser: {{limits: {{memory: 2Ti, leafCellHours: {{total: 11}}}}}}
"""
    assert _problems(quotas(text)) == [
        'cm/quotas: groups[0].users[1].limits.memory: must be a quantity such as 4, "500m" or '
        '16Gi, not "many"',
        "cm/quotas: groups[0].users: limits.cpu of 2 users add up to 8.5, more than "
        "groups[0].limits.cpu, which is 8",
        "cm/quotas: groups[0].eachUser.limits.memory: is 2.19902e+12, more than "
        "groups[0].limits.memory, which is 1.09951e+12",
        "cm/quotas: groups[0].eachUser.limits.leafCellHours.total: is 11, more than "
        "groups[0].limits.leafCellHours.total, which is 10",
    ]


CLAIMED = f"""{HEAD}Quotas
groups:
- {{name: a-first, admins: [mallory], users: [{{name: alice}}]}}
- {{name: vision}}
"""


@pytest.mark.parametrize(
    ("groups", "by_identity", "pays"),
    [
        ([VISION], [], "vision"),
        ([VISION], [VISION], "a-first"),
        ([GroupName("a-first"), VISION], [], "a-first"),
        ([], [], "a-first"),
        ([GroupName("others")], [], "a-first"),
    ],
    ids=[
        "a member that only the API server knows is not taken",
        "membership in the Identity document was compared when the document was changed",
        "a member of both groups",
        "a member of no group",
        "a member of a group without quotas",
    ],
)
def test_admins_of_a_group_cannot_take_members_of_another_group(
    groups: list[GroupName], by_identity: list[GroupName], pays: str
) -> None:
    table = table_of(CLAIMED)
    found = table.find(ALICE, tuple(groups), named=None, path="", by_identity=by_identity)
    assert found is not None
    assert found.name == pays
    chosen = table.find(ALICE, tuple(groups), named=GroupName("a-first"), path="")
    assert chosen is not None
    assert chosen.name == "a-first", "by the label of the pod"


def test_policy_admins_list_whom_they_want() -> None:
    table = table_of(CLAIMED.replace("admins: [mallory], ", ""))
    found = table.find(ALICE, (VISION,), named=None, path="", by_identity=())
    assert found is not None
    assert found.name == "a-first"
