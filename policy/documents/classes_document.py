"""The Classes document: the priority classes that managed pods can have, highest first."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from policy.classes import MAX_CELL_PRIORITY, OPPORTUNISTIC, Classes, PriorityClass
from policy.documents.models import (
    Document,
    Location,
    Strict,
    entries,
    names_given_twice,
)
from policy.documents.names import ClassNameField
from policy.documents.yaml_tree import Plain
from policy.errors import Problem
from policy.submission import ClassName
from policy.wording import join_path, listing, quote

MAX_CLASSES: Final = 100


class ClassEntry(Strict):
    """One priority class."""

    name: ClassNameField = Field(description="The name of a Kubernetes PriorityClass.")
    cell_priority: int = Field(
        ge=OPPORTUNISTIC,
        le=MAX_CELL_PRIORITY,
        description="The priority of its gangs in the cell engine: 0 to 1000 is guaranteed, "
        "-1 is opportunistic. Must be lower than that of the class before.",
    )
    high: bool = Field(
        default=False, description="Whether its leaf cells count as `occupiedHigh` in rules."
    )


class ClassesDocument(Document):
    """The priority classes that managed pods can have."""

    may_be_partial: ClassVar[bool] = True
    kind: Literal["Classes"] = Field(description="Always `Classes`.")
    classes: list[ClassEntry] = Field(
        min_length=1, max_length=MAX_CLASSES, description="All classes, highest first."
    )
    default: ClassNameField = Field(description="The class of a managed pod without one.")

    @classmethod
    def problems_in(cls, data: Mapping[str, Plain]) -> Iterator[Problem]:
        """Yield duplicate names, priorities out of order, and a default that is not listed."""
        yield from names_given_twice(data, "classes")
        yield from _priorities_out_of_order(data)
        given = [entry.get("name") for _, entry in entries(data, "classes")]
        names = list(dict.fromkeys(name for name in given if isinstance(name, str)))
        default = data.get("default")
        if isinstance(default, str) and names and default not in names:
            shown = listing([quote(name) for name in names[:MAX_CLASSES]])
            yield Problem("default", f"{quote(default)} is not one of the classes {shown}")

    @classmethod
    def take_away(cls, data: dict[str, Any], location: Location) -> None:
        """Keep the names of all classes, since other documents refer to them."""
        match location:
            case ("classes", int(place), "cellPriority"):
                data["classes"][place]["cellPriority"] = OPPORTUNISTIC
            case ("classes", int(place)) if isinstance(data["classes"][place], dict):
                data["classes"][place].setdefault("cellPriority", OPPORTUNISTIC)
            case ("default",):
                data["default"] = "default"
            case _:
                super().take_away(data, location)

    def build(self) -> Classes:
        """Build the ranked classes."""
        classes = [
            PriorityClass(
                name=ClassName(entry.name), cell_priority=entry.cell_priority, high=entry.high
            )
            for entry in self.classes
        ]
        return Classes.of(classes, default=ClassName(self.default))


def _priorities_out_of_order(data: Mapping[str, Plain]) -> Iterator[Problem]:
    above: tuple[int, int] | None = None
    for place, entry in entries(data, "classes"):
        priority = entry.get("cellPriority")
        if not isinstance(priority, int) or isinstance(priority, bool):
            continue
        if above is not None and priority >= above[1]:
            path = join_path(("classes", place, "cellPriority"))
            higher = f"{join_path(('classes', above[0], 'cellPriority'))}, which is {above[1]}"
            yield Problem(path, f"must be lower than {higher}, because the highest class is first")
        above = (place, priority)
