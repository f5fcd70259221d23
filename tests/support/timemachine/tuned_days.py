"""Days of gangs that waited, and documents that are tried, for the tests of the search."""

from collections.abc import Mapping, Sequence

from policy.documents.yaml_text import parse_yaml
from timemachine.tuning.document import Tree
from timemachine.tuning.figures import DayFigures, Waited
from timemachine.tuning.parameters import Parameter, parse_search

ONE_LEVEL = """
apiVersion: cellgate.io/v1
kind: Queues
levels: [{name: all, strategy: priority}]
"""


def a_tree(text: str = ONE_LEVEL) -> Tree:
    """Return a document as a tree."""
    tree, problems = parse_yaml(text)
    assert isinstance(tree, dict)
    assert not problems
    return tree


def searched(*texts: str, levels: Sequence[str] = ("all",)) -> list[Parameter]:
    """Return what is searched."""
    return parse_search(texts, levels=levels)


def a_day(
    day: int, waits: Mapping[str, Sequence[float]], large: Sequence[float] = ()
) -> DayFigures:
    """Return a day on which the gangs of VCs waited for so many seconds."""
    by_vc = {
        vc: Waited(gangs=float(len(some)), seconds=float(sum(some))) for vc, some in waits.items()
    }
    return DayFigures(day=day, by_vc=by_vc, large=list(large))


def days_of(*means: float, vc: str = "a", gangs: int = 50) -> list[DayFigures]:
    """Return days with so many gangs of one VC, and their mean waits."""
    return [a_day(day, {vc: [mean] * gangs}) for day, mean in enumerate(means)]
