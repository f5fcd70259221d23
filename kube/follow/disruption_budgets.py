"""PodDisruptionBudgets: how many pods of a service may be ended at present.

kube-controller-manager computes that for each budget (`status.disruptionsAllowed`); nothing is
counted here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kube.read.label_selectors import LabelSelector, read_selector
from kube.values.objects import mapping

PATH: Final = "/apis/policy/v1/poddisruptionbudgets"


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """One PodDisruptionBudget."""

    namespace: str
    name: str
    selector: LabelSelector
    allowed: int
    """How many of its pods may be ended at present."""


class DisruptionBudgetSink:
    """Keeps all PodDisruptionBudgets, by namespace."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, DisruptionBudget]] = {}
        self.on_change: list[Callable[[str], None]] = []
        """Callbacks that get the namespace of a budget that appeared, changed or went."""

    def of(self, namespace: str, labels: Mapping[str, str]) -> list[DisruptionBudget]:
        """Return the budgets that count a pod with these labels."""
        budgets = self._budgets.get(namespace)
        if not budgets:
            return []
        return [one for one in budgets.values() if one.selector.matches(labels)]

    def has_any(self, namespace: str) -> bool:
        """Whether a namespace has budgets."""
        return bool(self._budgets.get(namespace))

    def replace(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """Take all budgets there are; any other is gone."""
        before, self._budgets = self._budgets, {}
        for obj in objects:
            self._put(_read(obj))
        for namespace in dict.fromkeys([*before, *self._budgets]):
            if before.get(namespace) != self._budgets.get(namespace):
                self._tell(namespace)

    def upsert(self, obj: Mapping[str, Any]) -> None:
        """A budget appeared or changed."""
        budget = _read(obj)
        if self._budgets.get(budget.namespace, {}).get(budget.name) != budget:
            self._put(budget)
            self._tell(budget.namespace)

    def remove(self, obj: Mapping[str, Any]) -> None:
        """A budget is gone."""
        budget = _read(obj)
        budgets = self._budgets.get(budget.namespace, {})
        if budgets.pop(budget.name, None) is not None:
            self._tell(budget.namespace)

    def _put(self, budget: DisruptionBudget) -> None:
        self._budgets.setdefault(budget.namespace, {})[budget.name] = budget

    def _tell(self, namespace: str) -> None:
        for tell in self.on_change:
            tell(namespace)


def _read(obj: Mapping[str, Any]) -> DisruptionBudget:
    metadata, status = mapping(obj.get("metadata")), mapping(obj.get("status"))
    allowed = status.get("disruptionsAllowed")
    return DisruptionBudget(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        selector=read_selector(mapping(obj.get("spec")).get("selector")),
        allowed=allowed if isinstance(allowed, int) else 0,
    )
