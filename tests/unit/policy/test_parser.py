"""Documents: every problem at once, with its path, in plain words."""

import pytest

from policy.documents.classes_document import ClassesDocument
from policy.documents.rules_document import RulesDocument
from policy.errors import Problem, SpecError
from policy.parser import DocumentKind, parse_document, parse_label
from policy.rules.comparison import Comparison
from policy.rules.patterns import parse_pattern
from policy.rules.rule_table import Rule
from tests.support.policy.documents import CLASSES, HEAD, classes_of, rules_of

RULE_KEYS = (
    "user, group, vc, priority, current, occupied, occupiedHigh, occupiedLow, when, then, note"
)


def _problems(text: str, *, kind: DocumentKind | None = None) -> list[str]:
    with pytest.raises(SpecError) as raised:
        parse_document(text, kind=kind)
    return [str(problem) for problem in raised.value.problems]


def test_classes_are_read() -> None:
    text = """
classes:
- {name: prod, cellPriority: 100, high: true}
- {name: test, cellPriority: 10, high: true}
- {name: oppo, cellPriority: -1}
default: test
"""
    assert classes_of(text) == CLASSES


def test_rules_are_read_and_an_empty_field_is_as_good_as_none() -> None:
    text = """
- {user: "^fa_test$", then: retain}
- user:
  group: ""
  vc: ^lab$
  priority: prod|test
  current: 4
  occupied: ">= 8"
  occupiedHigh: ""
  when:
  then: oppo
  note: |
    more than
    8 cells
"""
    assert rules_of(text).rules == (
        Rule(user=parse_pattern("^fa_test$"), then="retain"),
        Rule(
            vc=parse_pattern("^lab$"),
            priority=parse_pattern("prod|test"),
            current=Comparison(">", 4),
            occupied=Comparison(">=", 8),
            then="oppo",
            note="more than 8 cells",
        ),
    )


def test_all_problems_of_rules_are_told_at_once() -> None:
    text = f"""{HEAD}Rules
rules:
- {{user: (a, then: Retain, usr: x}}
- {{occupied: 4.5, when: foo, current: true}}
- 5
- {{user: 5, user: 6, vc: [a], then: , note: [1]}}
- {{group: "{"a" * 4097}", then: 5, note: "{"n" * 501}"}}
- {{then: fail, note: "a\\u0007b"}}
other: 1
"""
    assert _problems(text) == [
        "rules[3].user: the key is given twice, again at line 7, column 13",
        'rules[0].user: is not a valid regular expression: missing ) in "(a"',
        'rules[0].then: must be retain, fail or the name of a class: "Retain" is not a Kubernetes '
        "name (lower-case letters, digits, - and ., a letter or digit at both ends)",
        f"rules[0].usr: unknown key; known keys are {RULE_KEYS}",
        'rules[1].current: must be a comparison such as "> 4" or 4, not true',
        'rules[1].occupied: must be a comparison such as "> 4" or 4, not 4.5',
        'rules[1].when: unknown variable "foo"; known variables are user, groups, vc, class, '
        "requestedClass, current, occupied, occupiedHigh, occupiedLow, leafType, gangSize, "
        "namespace, labels",
        "rules[1].then: is required",
        "rules[2]: must be a mapping, not 5",
        "rules[3].user: must be a regular expression in quotes, not 5",
        "rules[3].vc: must be a regular expression in quotes, not a list",
        "rules[3].then: must be retain, fail or the name of a class: null is not a name",
        "rules[3].note: must be a string, not a list",
        "rules[4].group: is 4097 characters long; at most 4096 are allowed",
        "rules[4].then: must be retain, fail or the name of a class: 5 is not a name",
        "rules[4].note: is 501 characters long; at most 500 are allowed",
        "rules[5].note: must not contain characters that cannot be printed",
        "other: unknown key; known keys are apiVersion, kind, rules, impossible",
    ]


def test_all_problems_of_classes_are_told_at_once() -> None:
    text = f"""{HEAD}Classes
classes:
- {{name: prod, cellPriority: 1.5}}
- {{name: prod, cellPriority: 10, high: yes}}
- {{name: B_, cellPriority: 20}}
- {{name: fail, cellPriority: -2}}
- {{cellPriority: 1001, colour: red}}
- []
default: x
"""
    assert _problems(text) == [
        "classes[0].cellPriority: must be a whole number, not 1.5",
        'classes[1].high: must be true or false, not "yes"',
        'classes[2].name: "B_" is not a Kubernetes name '
        "(lower-case letters, digits, - and ., a letter or digit at both ends)",
        'classes[3].name: "fail" has a meaning in rules and cannot be a class',
        "classes[3].cellPriority: must be at least -1, not -2",
        "classes[4].name: is required",
        "classes[4].cellPriority: must be at most 1000, not 1001",
        "classes[4].colour: unknown key; known keys are name, cellPriority, high",
        "classes[5]: must be a mapping, not a list",
        "classes[1].name: duplicate of classes[0].name",
        "classes[2].cellPriority: must be lower than classes[1].cellPriority, which is 10, "
        "because the highest class is first",
        "classes[4].cellPriority: must be lower than classes[3].cellPriority, which is -2, "
        "because the highest class is first",
        'default: "x" is not one of the classes "prod", "B_", "fail"',
    ]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["the document is empty; expected a mapping with apiVersion and kind"]),
        ("[]", ["the document is a list; expected a mapping with apiVersion and kind"]),
        (
            "Rules",
            ['the document is "Rules"; expected a mapping with apiVersion and kind'],
        ),
        ("rules: []", ["apiVersion: is required", "kind: is required"]),
        (
            "apiVersion: v1\nkind: Rule",
            [
                'apiVersion: must be cellgate.io/v1, not "v1"',
                "kind: must be one of Classes, Rules, Cluster, Quotas, Identity, Shaping, Billing, "
                'Queues, not "Rule"',
            ],
        ),
        (
            "apiVersion: cellgate.io/v1\nkind: [Rules]",
            [
                "kind: must be one of Classes, Rules, Cluster, Quotas, Identity, Shaping, Billing, "
                "Queues, not a list"
            ],
        ),
        (
            "apiVersion: v1\nkind: Rules\nrules: []",
            ['apiVersion: must be cellgate.io/v1, not "v1"'],
        ),
        (f"{HEAD}Rules\nrules:", ["rules: must be a list, not null"]),
        (f"{HEAD}Rules\nrules: {{a: 1}}", ["rules: must be a list, not a mapping"]),
        (
            f"{HEAD}Classes\nclasses: []\ndefault: 5",
            ["classes: must not be empty", "default: 5 is not a name"],
        ),
        (
            f"{HEAD}Rules\nrules: []\n'a b\\n': 1",
            ['["a b\\\\n"]: unknown key; known keys are apiVersion, kind, rules, impossible'],
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_document_without_a_right_head_or_body_is_refused(text: str, problems: list[str]) -> None:
    assert _problems(text) == problems


def test_a_document_must_be_what_its_label_says() -> None:
    assert _problems(f"{HEAD}Rules\nrules: [5]", kind=DocumentKind.CLASSES) == [
        "kind: must be Classes, not Rules, "
        "because the ConfigMap is labelled cellgate.io/policy: classes"
    ]
    assert _problems("rules: [5]", kind=DocumentKind.RULES) == [
        "apiVersion: is required",
        "kind: is required",
        "rules[0]: must be a mapping, not 5",
    ]


def test_too_many_problems_are_counted_not_listed() -> None:
    problems = _problems(f"{HEAD}Rules\nrules: [{', '.join(['1'] * 150)}]")
    assert (problems[99], problems[100:]) == (
        "rules[99]: must be a mapping, not 1",
        ["50 more problems not shown"],
    )


def test_too_many_rules_are_refused() -> None:
    text = f"{HEAD}Rules\nrules:\n- &r {{then: fail}}\n" + "- *r\n" * 5000
    assert _problems(text) == ["rules: must have at most 5000 entries"]


def test_a_document_that_takes_too_long_to_compile_is_refused() -> None:
    lines = [f"- {{user: '\\pL{{4}}{number}', then: fail}}\n" for number in range(2000)]
    problems = _problems(f"{HEAD}Rules\nrules:\n{''.join(lines)}")
    assert problems[0].endswith(
        ".user: is not compiled: all regular expressions and `when` of the document together "
        "are too large"
    )


@pytest.mark.parametrize(
    ("label", "kind"), [("classes", DocumentKind.CLASSES), ("rules", DocumentKind.RULES)]
)
def test_a_label_names_a_kind(label: str, kind: DocumentKind) -> None:
    assert parse_label(label) is kind


def test_an_unknown_label_is_refused() -> None:
    with pytest.raises(SpecError) as raised:
        parse_label("Rules")
    assert raised.value.problems == (
        Problem(
            "cellgate.io/policy",
            '"Rules" is not a kind of policy document; the kinds are '
            "classes, rules, cluster, quotas, identity, shaping, billing, queues",
        ),
    )


@pytest.mark.parametrize("model", [ClassesDocument, RulesDocument])
def test_every_field_is_documented(model: type[ClassesDocument | RulesDocument]) -> None:
    schema = model.model_json_schema()
    parts = [schema, *schema["$defs"].values()]
    undocumented = [
        name
        for part in parts
        for name, field in part["properties"].items()
        if "description" not in field
    ]
    assert undocumented == []
