"""Label selectors as Kubernetes' objects state them: `matchLabels` and `matchExpressions`."""

from collections.abc import Mapping
from dataclasses import dataclass

from kube.values.objects import items, mapping
from policy.pod_resources import LabelRule


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All its requirements must hold; None selects nothing, and no requirement selects all."""

    requirements: tuple[LabelRule, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        return self.requirements is not None and all(
            one.is_met_by(labels) for one in self.requirements
        )


def read_selector(selector: object) -> LabelSelector:
    """Read a selector; one that is missing selects nothing."""
    if not isinstance(selector, Mapping):
        return LabelSelector(None)
    equal = [
        LabelRule(key, "In", (str(value),))
        for key, value in mapping(selector.get("matchLabels")).items()
    ]
    wider = [
        LabelRule(str(one.get("key")), str(one.get("operator")), _texts(one.get("values")))
        for one in items(selector.get("matchExpressions"))
    ]
    return LabelSelector((*equal, *wider))


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(str, values)) if isinstance(values, list) else ()
