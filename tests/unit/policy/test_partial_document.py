"""What is wrong with a document is told at once, also what only others can tell of it."""

import pytest

from policy.errors import SpecError
from policy.parser import DocumentKind
from policy.store import PolicyStore, PolicyText, build_policy, list_problems
from tests.support.policy.documents import CLASSES_TEXT, HEAD


def _texts(**texts: str) -> list[PolicyText]:
    return [
        PolicyText(kind=DocumentKind(kind.capitalize()), source=kind, text=text)
        for kind, text in texts.items()
    ]


def _problems(**texts: str) -> list[str]:
    with pytest.raises(SpecError) as refused:
        build_policy(_texts(**texts))
    return list(map(str, refused.value.problems))


def test_every_kind_of_mistake_in_one_rules_document_is_told_at_once() -> None:
    rules = f"""{HEAD}Rules
rules:
- {{user: "^a$", then: retain, colour: red}}
- {{user: "(", current: "about 4", then: oppo}}
- {{user: "^a$", then: fail}}
- {{user: x, then: nosuch}}
- {{priority: oppo, then: prod}}
"""
    assert _problems(classes=CLASSES_TEXT, rules=rules) == [
        "rules: rules[0].colour: unknown key; known keys are user, group, vc, priority, current, "
        "occupied, occupiedHigh, occupiedLow, when, then, note",
        'rules: rules[1].user: is not a valid regular expression: missing ) in "("',
        'rules: rules[1].current: must be a comparison such as "> 4" or 4, not "about 4"',
        "rules: rules[2]: can never apply: rule 1 (retain) matches the same gangs and stops",
        'rules: rules[3].then: "nosuch" is not one of the classes prod, test, oppo; use retain, '
        "fail or a class",
        "rules: rules[4].then: prod is not lower than any class that the rule matches: oppo",
    ]


def test_nothing_is_proved_by_a_rule_that_can_be_read_in_part_only() -> None:
    rules = f"{HEAD}Rules\nrules:\n- {{user: '(', then: fail}}\n- {{user: '^b$', then: retain}}\n"
    assert _problems(classes=CLASSES_TEXT, rules=rules) == [
        'rules: rules[0].user: is not a valid regular expression: missing ) in "("'
    ]


def test_rules_after_one_that_does_not_say_what_it_does_are_left_for_later() -> None:
    rules = f"{HEAD}Rules\nrules:\n- {{user: a}}\n- {{then: nosuch}}\n"
    assert _problems(classes=CLASSES_TEXT, rules=rules) == ["rules: rules[0].then: is required"]


def test_quotas_with_an_unknown_key_are_compared_with_the_classes() -> None:
    quotas = f"{HEAD}Quotas\ngroups: [{{name: vision, over: nosuch, limits: {{cells: 4}}}}]\n"
    assert [one.partition(": ")[2] for one in _problems(classes=CLASSES_TEXT, quotas=quotas)] == [
        "groups[0].limits.cells: unknown key; known keys are leafCells, leafCellsHigh, gangs, cpu, "
        "memory, "
        "leafCellHours, byLeafType",
        'groups[0].over: "nosuch" is not one of the classes prod, test, oppo; '
        "use fail, queue or a class",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [("cellPriority: 10,", "cellPriority: 5000,"), ("cellPriority: 10,", ""), ("oppo}", "[}")],
    ids=["a bad value", "a missing value", "no YAML"],
)
def test_bad_classes_are_not_held_against_documents_that_name_them(before: str, after: str) -> None:
    classes = CLASSES_TEXT.replace(before, after)
    if classes == CLASSES_TEXT:
        classes = "["
    rules = f"{HEAD}Rules\nrules: [{{then: oppo}}]\n"
    assert {one.partition(":")[0] for one in _problems(classes=classes, rules=rules)} == {"classes"}


def test_a_partial_document_is_never_in_force() -> None:
    store = PolicyStore()
    good = f"{HEAD}Rules\nrules: [{{user: a, then: fail}}]\n"
    version = store.update(_texts(classes=CLASSES_TEXT, rules=good)).version
    bad = f"{HEAD}Rules\nrules: [{{user: b, then: fail, colour: red}}]\n"
    assert store.update(_texts(classes=CLASSES_TEXT, rules=bad)).version == version
    assert [str(one).partition(";")[0] for one in list_problems(store.problems)] == [
        "rules: rules[0].colour: unknown key"
    ]
