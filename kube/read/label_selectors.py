"""Label selectors as Kubernetes' objects state them: `matchLabels` and `matchExpressions`."""

from collections.abc import Mapping
from dataclasses import dataclass

from kube.values.objects import items, mapping


@dataclass(frozen=True, slots=True)
class _Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return False  # an operator that no API server stores


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All its requirements must hold; None selects nothing, and no requirement selects all."""

    requirements: tuple[_Requirement, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        return self.requirements is not None and all(one.holds(labels) for one in self.requirements)


def read_selector(selector: object) -> LabelSelector:
    """Read a selector; one that is missing selects nothing."""
    if not isinstance(selector, Mapping):
        return LabelSelector(None)
    equal = [
        _Requirement(key, "In", (str(value),))
        for key, value in mapping(selector.get("matchLabels")).items()
    ]
    wider = [
        _Requirement(str(one.get("key")), str(one.get("operator")), _texts(one.get("values")))
        for one in items(selector.get("matchExpressions"))
    ]
    return LabelSelector((*equal, *wider))


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()
