"""The documents that are tried: the current one, pure strategies, and samples of the ranges.

Samples are a Latin hypercube: the range of each parameter is cut into as many parts as there are
samples, and each part is used once. So few samples cover each range, even if only one of several
parameters matters. What the document's own checks refuse, such as a worth beyond `promoteAfter`, is
sampled again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.queues.queues import PRESETS, Queues, Strategy
from timemachine.tuning.chances import Chances
from timemachine.tuning.document import Tree, Values, changed, current_value, read, write
from timemachine.tuning.parameters import Parameter

CURRENT: Final = "current"
_ROUNDS: Final = 20
"""How often samples that are refused are drawn again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document that is tried."""

    name: str
    """`current`, a strategy, or `sample 7`."""
    values: Values = field(default_factory=dict)
    """What differs from the current document."""
    tree: Tree = field(repr=False)
    queues: Queues = field(repr=False)

    @property
    def text(self) -> str:
        """The document."""
        return write(self.tree)


def propose(
    tree: Tree, parameters: Sequence[Parameter], *, count: int, seed: int
) -> list[Candidate]:
    """Return the current document, then at most `count` others, no two of them alike."""
    queues = read(tree)
    assert queues is not None, "the current document is in force"
    found = [Candidate(name=CURRENT, tree=tree, queues=queues)]
    known = {write(changed(tree, _current_values(tree, parameters))), write(tree)}
    proposed = (*_strategies(parameters), *_samples(parameters, count, Chances(seed)))
    for name, values in proposed:
        if len(found) > count:
            break
        new = changed(tree, values)
        text, queues = write(new), read(new)
        if queues is not None and text not in known:
            known.add(text)
            found.append(Candidate(name=name, values=values, tree=new, queues=queues))
    return found


def _current_values(tree: Tree, parameters: Sequence[Parameter]) -> Values:
    """Return what the document says now, to know a candidate that changes nothing."""
    values = {one: current_value(tree, one) for one in parameters}
    return {one: value for one, value in values.items() if value is not None}


def _strategies(parameters: Sequence[Parameter]) -> Iterator[tuple[str, Values]]:
    """Yield pure strategies, as far as the ranges allow them."""
    for strategy in Strategy:
        values = {
            one: one.clip(PRESETS[strategy].get(one.factor, 0.0))
            for one in parameters
            if one.factor is not None
        }
        if values and strategy is not Strategy.FORMULA:
            yield strategy.value, values


def _samples(
    parameters: Sequence[Parameter], count: int, chances: Chances
) -> Iterator[tuple[str, Values]]:
    number = 0
    for _ in range(_ROUNDS if parameters else 0):
        for values in _hypercube(parameters, count, chances):
            number += 1
            yield f"sample {number}", values


def _hypercube(parameters: Sequence[Parameter], count: int, chances: Chances) -> Iterator[Values]:
    columns = [chances.shuffled(range(count)) for _ in parameters]
    for row in zip(*columns, strict=True):
        yield {
            parameter: parameter.value_at((part + chances.share()) / count)
            for parameter, part in zip(parameters, row, strict=True)
        }
