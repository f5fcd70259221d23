"""Which gangs a level takes: by class, group, user and VC, and by a CEL condition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from policy.rules.expression import (
    EvaluationError,
    Expression,
    build_inputs,
    parse_expression,
)

WHEN_VARIABLES: Final[Mapping[str, object]] = {
    "user": "user",
    "group": "group",
    "vc": "vc",
    "class": "class",
    "priority": 1,
    "leafCells": 1,
    "leafType": "type",
    "namespace": "namespace",
}
"""The variables of `when`, each with an example of its type."""


class AskingGang(Protocol):
    """What a level knows of a gang."""

    @property
    def user(self) -> str:
        """The submitter."""

    @property
    def group(self) -> str | None:
        """The group that is charged."""

    @property
    def vc(self) -> str:
        """Its VC."""

    @property
    def class_name(self) -> str:
        """Its class."""

    @property
    def priority(self) -> int:
        """Its priority in the cell engine."""

    @property
    def leaf_cells(self) -> int:
        """The leaf cells of all its members."""

    @property
    def leaf_type(self) -> str | None:
        """The leaf type that it asks for."""

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """The gangs of a level. An empty field takes all; every other field must match."""

    classes: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    vcs: frozenset[str] = frozenset()
    when: Expression | None = None

    def takes(self, gang: AskingGang) -> bool:
        """Tell whether a gang matches; a condition that cannot be evaluated does not."""
        return (
            _is_in(self.classes, gang.class_name)
            and _is_in(self.groups, gang.group)
            and _is_in(self.users, gang.user)
            and _is_in(self.vcs, gang.vc)
            and (self.when is None or _holds(self.when, gang))
        )


EVERY_GANG: Final = Who()


def parse_when(value: object) -> Expression:
    """Compile the condition of a level. Raises ValueError in plain words."""
    return parse_expression(value, variables=WHEN_VARIABLES)


def _is_in(names: frozenset[str], name: str | None) -> bool:
    return not names or name in names


def _holds(when: Expression, gang: AskingGang) -> bool:
    values = {
        "user": gang.user,
        "group": gang.group or "",
        "vc": gang.vc,
        "class": gang.class_name,
        "priority": gang.priority,
        "leafCells": gang.leaf_cells,
        "leafType": gang.leaf_type or "",
        "namespace": gang.namespace,
    }
    try:
        return when.holds(build_inputs(values))
    except EvaluationError:
        return False
