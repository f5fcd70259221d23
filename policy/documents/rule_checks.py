"""Rules that can never apply, and classes that do not exist or cannot be reached.

Only what can be proved is a problem: a rule is reported if it could make no difference to any
submission. The search for a proof is bounded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from policy.classes import Classes
from policy.errors import Problem
from policy.quotas.quota_table import QuotaGroup
from policy.rules.comparison import Comparison, covers
from policy.rules.patterns import Pattern
from policy.rules.rule_table import Rule, RuleTable
from policy.submission import ClassName
from policy.wording import join_path, listing, quote

_MATCH_ALL: Final = frozenset({".*", "^.*", ".*$", "^.*$", "^", "$"})
_MAX_COMPARED: Final = 16
"""Rules with the same texts with which later ones are compared."""
_MAX_COMPARISONS: Final = 100_000
"""In all: half a second for a table made to be slow; real ones need a tenth of it."""


def check_priorities(classes: Classes, values: Mapping[str, int]) -> list[Problem]:
    """Return classes whose PriorityClass is not lower than that of a class above.

    `values` are those of the PriorityClasses that exist; one may still be missing.
    """
    problems: list[Problem] = []
    above: tuple[ClassName, int] | None = None
    for place, name in enumerate(classes.names):
        value = values.get(name)
        if value is None:
            continue
        if above is not None and value >= above[1]:
            higher = f"that of {above[0]}, which is {above[1]}"
            message = f"the value of PriorityClass {name} is {value}, not lower than {higher}"
            problems.append(Problem(join_path(("classes", place, "name")), message))
        above = (name, value)
    return problems


def check_over(group: QuotaGroup, classes: Classes) -> str | None:
    """Describe a problem with the class to which a group's gangs are lowered over quota."""
    name = ClassName(group.over)
    if not group.lowers:
        return None
    if not classes.is_listed(name):
        return f"{_unknown_class(name, classes)}; use fail, queue or a class"
    if classes.rank(name) == 0:
        return f"{name} is the highest class: no gang can be lowered to it"
    return None


def check_policy(classes: Classes, rules: RuleTable) -> list[Problem]:
    """Return all contradictions, in the order of the rules."""
    problems: list[Problem] = []
    earlier = _StoppingRules()
    for index, rule in enumerate(rules.rules):
        problems += _class_problems(index, rule, classes)
        covering = earlier.find_covering(rule)
        if covering is not None:
            problems.append(_unreachable(index, rules.rules[covering], covering))
        earlier.add(index, rule)
    return problems


def _unreachable(index: int, rule: Rule, covering: int) -> Problem:
    message = f"can never apply: rule {covering + 1} ({rule.then}) matches the same gangs and stops"
    return Problem(join_path(("rules", index)), message)


def _class_problems(index: int, rule: Rule, classes: Classes) -> Iterator[Problem]:
    then = ClassName(rule.then)
    is_known = rule.stops or classes.is_listed(then)
    if not is_known:
        hint = "; use retain, fail or a class" if classes.names else ""
        message = f"{_unknown_class(then, classes)}{hint}"
        yield Problem(join_path(("rules", index, "then")), message)
    matching = [
        name for name in classes.names if rule.priority is None or rule.priority.found_in(name)
    ]
    if classes.names and not matching:
        message = f"matches none of the classes {listing(classes.names)}"
        yield Problem(join_path(("rules", index, "priority")), message)
    elif is_known and not rule.stops and not any(classes.is_lower(then, name) for name in matching):
        message = f"{then} is not lower than any class that the rule matches: {listing(matching)}"
        yield Problem(join_path(("rules", index, "then")), message)


def _unknown_class(name: ClassName, classes: Classes) -> str:
    if not classes.names:
        return f"{quote(name)} is not a class: there is no Classes document"
    return f"{quote(name)} is not one of the classes {listing(classes.names)}"


_Texts = tuple[str, ...]
_Numbers = tuple[Comparison | None, ...]
_Table = dict[_Texts, list[tuple[int, _Numbers]]]


@dataclass(slots=True)
class _StoppingRules:
    """The earlier rules that stop, indexed by their texts.

    An earlier rule covers a later one if each of its fields is empty, or equal, or (for numbers)
    allows more. A condition on the class counts only if no rule in between can have lowered the
    class: a gang may pass the earlier rule in one class and reach the later one in another.
    """

    _any_class: _Table = field(default_factory=dict)
    """Rules without a condition on the class."""
    _same_class: _Table = field(default_factory=dict)
    """The others, since the last rule that lowers."""
    _comparisons: int = 0

    def add(self, index: int, rule: Rule) -> None:
        if not rule.stops:
            self._same_class.clear()
            return
        table = self._same_class if _is_about_class(rule) else self._any_class
        same = table.setdefault(_texts(rule), [])
        if len(same) < _MAX_COMPARED:
            same.append((index, _numbers(rule)))

    def find_covering(self, rule: Rule) -> int | None:
        """Return the first earlier rule that covers this one."""
        numbers = _numbers(rule)
        found = [index for index, wider in self._candidates(rule) if _allow(wider, numbers)]
        return min(found, default=None)

    def _candidates(self, rule: Rule) -> Iterator[tuple[int, _Numbers]]:
        """Yield the earlier rules whose texts cover those of this one."""
        for texts in _wider_texts(rule):
            for table in (self._any_class, self._same_class):
                same = table.get(texts, ())
                self._comparisons += len(same)
                if self._comparisons > _MAX_COMPARISONS:
                    return
                yield from same


def _allow(wider: _Numbers, numbers: _Numbers) -> bool:
    return all(map(covers, wider, numbers))


def _is_about_class(rule: Rule) -> bool:
    return (
        bool(_unless_match_all(rule.priority))
        or rule.occupied_high is not None
        or rule.occupied_low is not None
        or (rule.when is not None and rule.when.depends_on_class)
    )


def _texts(rule: Rule) -> _Texts:
    """The fields that are compared as texts; "" matches all."""
    return (
        _unless_match_all(rule.user),
        # Not even `.*` matches a submitter without groups.
        str(rule.group or ""),
        _unless_match_all(rule.vc),
        _unless_match_all(rule.priority),
        str(rule.when or ""),
    )


def _wider_texts(rule: Rule) -> Iterator[_Texts]:
    """Yield the texts of rules that match at least what this one matches."""
    return product(*(("", text) if text else ("",) for text in _texts(rule)))


def _unless_match_all(pattern: Pattern | None) -> str:
    return "" if pattern is None or pattern.source in _MATCH_ALL else pattern.source


def _numbers(rule: Rule) -> _Numbers:
    return (rule.current, rule.occupied, rule.occupied_high, rule.occupied_low)
