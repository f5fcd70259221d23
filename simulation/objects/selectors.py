"""Label and field selectors, from query parameters and from objects."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulation.objects import status
from simulation.objects.fields import Object
from simulation.objects.resources import Resource

Selects = Callable[[Object], bool]

_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")
_SET_BASED = re.compile(r"([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUALITY = re.compile(r"([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)")
_EXISTENCE = re.compile(r"(!?)\s*([\w./-]+)")


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, obj: Object) -> bool:
        """Tell whether an object matches; a missing label matches NotIn, as in Kubernetes."""
        labels = obj["metadata"].get("labels") or {}
        match self.operator:
            case "In" | "NotIn":
                return (labels.get(self.key) in self.values) == (self.operator == "In")
            case "Exists" | "DoesNotExist":
                return (self.key in labels) == (self.operator == "Exists")
        raise status.bad_request(f"{self.operator!r} is not a valid selector operator")


def parse_labels(text: str) -> list[LabelRequirement]:
    """Parse a labelSelector parameter: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""
    parts = (part.strip() for part in _COMMA_OUTSIDE_PARENTHESES.split(text))
    return [_parse_requirement(part) for part in parts if part]


def _parse_requirement(text: str) -> LabelRequirement:
    if found := _SET_BASED.fullmatch(text):
        values = tuple(value.strip() for value in found[3].split(","))
        return LabelRequirement(found[1], "In" if found[2] == "in" else "NotIn", values)
    if found := _EQUALITY.fullmatch(text):
        return LabelRequirement(found[1], "NotIn" if found[2] == "!=" else "In", (found[3],))
    if found := _EXISTENCE.fullmatch(text):
        return LabelRequirement(found[2], "DoesNotExist" if found[1] else "Exists")
    raise status.bad_request(f"unable to parse requirement: {text!r}")


def matches_selector(selector: Mapping[str, Any] | None, obj: Object) -> bool:
    """Tell whether an object matches a LabelSelector; an empty one matches everything."""
    equal = (selector or {}).get("matchLabels") or {}
    wider = (selector or {}).get("matchExpressions") or ()
    requirements = [LabelRequirement(key, "In", (value,)) for key, value in equal.items()]
    requirements += [
        LabelRequirement(one["key"], one["operator"], tuple(one.get("values") or ()))
        for one in wider
    ]
    return all(requirement.matches(obj) for requirement in requirements)


def parse_fields(resource: Resource, text: str) -> list[tuple[str, bool, str]]:
    """Parse a fieldSelector parameter into path, is-equal and value; 400 for unknown paths."""
    terms = [_EQUALITY.fullmatch(term.strip()) for term in text.split(",") if term.strip()]
    known = ("metadata.name", "metadata.namespace", *resource.fields)
    for term in terms:
        if term is None or term[1] not in known:
            raise status.bad_request(f"field label not supported: {term[1] if term else text}")
    return [(term[1], term[2] != "!=", term[3]) for term in terms if term]


def build_selects(
    resource: Resource, *, namespace: str, label_selector: str, field_selector: str
) -> Selects:
    """Combine namespace, label selector and field selector into one predicate."""
    labels = parse_labels(label_selector)
    fields = parse_fields(resource, field_selector)

    def selects(obj: Object) -> bool:
        return (
            (not namespace or obj["metadata"].get("namespace") == namespace)
            and all(one.matches(obj) for one in labels)
            and all((_field(obj, path) == value) == equal for path, equal, value in fields)
        )

    return selects


def parse_number(query: Mapping[str, str], name: str) -> int:
    """Parse a number of a query; 0 if it is missing, 400 if it is not a number."""
    text = query.get(name) or "0"
    if not text.isdigit():
        raise status.bad_request(f"{name} must be a number, not {text!r}")
    return int(text)


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
