"""Facts and documents for tests of the order."""

from dataclasses import replace

from extender.queue.forecast.model import NOTHING_KNOWN, RunTime
from extender.queue.order.facts import QueueFacts
from policy.classes import Classes, PriorityClass
from policy.documents.queues_document import QueuesDocument
from policy.parser import parse_document
from policy.queues.queues import Queues
from policy.submission import ClassName, GangKey, VcName

CLASSES = Classes.of(
    [
        PriorityClass(name=ClassName("prod"), cell_priority=100, high=True),
        PriorityClass(name=ClassName("test"), cell_priority=10),
        PriorityClass(name=ClassName("oppo"), cell_priority=-1),
    ],
    default=ClassName("test"),
)
HOUR = 3600.0
DAY = 24 * HOUR


def queues(text: str) -> Queues:
    """Read the document, without its head."""
    document = parse_document(f"apiVersion: cellgate.io/v1\nkind: Queues\n{text}")
    assert isinstance(document, QueuesDocument)
    return document.build()


def one_level(strategy: str, **worth: str) -> Queues:
    """Read a document of one level."""
    given = ", ".join(f"{name}: {text}" for name, text in worth.items())
    return queues(f"levels: [{{name: all, strategy: {strategy}, worth: {{{given}}}}}]")


def facts(name: str = "bert", *, asked: float = 0.0, **changes: object) -> QueueFacts:
    """Describe a gang of alice in VC lab."""
    run_time = NOTHING_KNOWN
    if "run" in changes or "limit" in changes:
        median, limit = changes.pop("run", None), changes.pop("limit", None)
        run_time = RunTime(median=median, limit=limit)  # type: ignore[arg-type]
    base = QueueFacts(
        gang=GangKey("ns", name),
        user="alice",
        group="vision",
        vc=VcName("lab"),
        class_name="test",
        priority=10,
        leaf_cells=8,
        asked=asked,
        run_time=run_time,
    )
    return replace(base, **changes)  # type: ignore[arg-type]
