"""Policy documents of one kind, as text and read, and submissions that they decide about.

A test gives the part that matters; the head is added here.
"""

from collections.abc import Mapping
from typing import Any

from policy.classes import Classes, PriorityClass
from policy.documents.classes_document import ClassesDocument
from policy.documents.rules_document import RulesDocument
from policy.documents.shaping_document import ShapingDocument
from policy.parser import DocumentKind, parse_document
from policy.rules.rule_table import RuleTable
from policy.shaping import PodOrigin, Shapes
from policy.store import PolicyText
from policy.submission import (
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    Submission,
    UserName,
    VcName,
)

HEAD = "apiVersion: cellgate.io/v1\nkind: "

PROD, TEST, OPPO = ClassName("prod"), ClassName("test"), ClassName("oppo")
CLASSES = Classes.of(
    [
        PriorityClass(name=PROD, cell_priority=100, high=True),
        PriorityClass(name=TEST, cell_priority=10, high=True),
        PriorityClass(name=OPPO, cell_priority=-1),
    ],
    default=TEST,
)
CLASSES_TEXT = f"""{HEAD}Classes
classes:
- {{name: prod, cellPriority: 100, high: true}}
- {{name: test, cellPriority: 10, high: true}}
- {{name: oppo, cellPriority: -1}}
default: test
"""
TWO_CLASSES_TEXT = f"""{HEAD}Classes
classes:
- {{name: prod, cellPriority: 100, high: true}}
- {{name: oppo, cellPriority: -1}}
default: oppo
"""


def classes(text: str = CLASSES_TEXT, source: str = "cm/classes") -> PolicyText:
    """Return a Classes document as the store takes it."""
    return PolicyText(kind=DocumentKind.CLASSES, source=source, text=text)


def rules(rules: str, source: str = "cm/rules") -> PolicyText:
    """Return a Rules document as the store takes it, given the list of its rules."""
    return PolicyText(kind=DocumentKind.RULES, source=source, text=f"{HEAD}Rules\nrules:\n{rules}")


def a_submission(
    user: str = "alice",
    *,
    asks: int = 1,
    class_name: str = "prod",
    groups: tuple[str, ...] = (),
    vc: str = "default",
    leaf_type: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Submission:
    return Submission(
        user=UserName(user),
        groups=tuple(GroupName(group) for group in groups),
        vc=VcName(vc),
        requested_class=ClassName(class_name),
        gang=GangKey("team", "bert"),
        leaf_count=asks,
        leaf_type=None if leaf_type is None else LeafType(leaf_type),
        labels=labels or {},
    )


def rules_of(text: str) -> RuleTable:
    """Read the list of a Rules document, given without its head."""
    document = parse_document(f"{HEAD}Rules\nrules:\n{text}", kind=DocumentKind.RULES)
    assert isinstance(document, RulesDocument)
    return document.build()


def classes_of(text: str) -> Classes:
    """Read a Classes document, given without its head."""
    document = parse_document(f"{HEAD}Classes\n{text}", kind=DocumentKind.CLASSES)
    assert isinstance(document, ClassesDocument)
    return document.build()


def an_origin(**fields: Any) -> PodOrigin:
    """A pod of alice in VC default."""
    return PodOrigin(**{"user": "alice", "vc": "default", "namespace": "team", **fields})


def shapes_of(text: str) -> Shapes:
    """Read a Shaping document."""
    document = parse_document(text)
    assert isinstance(document, ShapingDocument)
    return document.build()
