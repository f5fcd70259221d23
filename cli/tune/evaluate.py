"""One evaluation, in a process of its own: a document, played on one stretch.

The arrivals and the world are given to each process when it begins; a task brings the document as
text.
"""

import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cli.tune.kept import Evaluation
from policy.documents.queues_document import QueuesDocument
from policy.parser import DocumentKind, parse_document
from service.garbage import settle_collector
from timemachine.model import Arrival, World
from timemachine.play import play
from timemachine.tuning.figures import figures_of
from timemachine.tuning.stretches import Stretch, arrivals_of

_LOOK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What all evaluations have in common."""

    arrivals: Sequence[Arrival]
    world: World
    large: int
    """Gangs of so many leaf cells are large."""


_given: Given | None = None


def begin(given: Given) -> None:
    """Prepare this process: it ends with its parent, not by the terminal's interrupt."""
    global _given
    _given = given
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    settle_collector()


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which may have been killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def evaluate(text: str, stretch: Stretch) -> Evaluation:
    """Play a document in this process."""
    assert _given is not None
    return evaluate_given(_given, text, stretch)


def evaluate_given(given: Given, text: str, stretch: Stretch) -> Evaluation:
    """Play a document on a stretch."""
    began = time.perf_counter()
    document = parse_document(text, kind=DocumentKind.QUEUES)
    assert isinstance(document, QueuesDocument)
    policy = replace(given.world.policy, queues=document.build())
    world = replace(given.world, policy=policy)
    run = play(arrivals_of(given.arrivals, stretch), world)
    days = figures_of(run, stretch, large=given.large)
    return Evaluation(days=days, seconds=time.perf_counter() - began)
