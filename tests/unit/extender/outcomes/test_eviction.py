"""What is told and counted when a pod is ended, by whom it was."""

from collections.abc import Callable

import pytest

from extender.outcomes.announcer import Announcer
from extender.outcomes.eviction import Ending
from kube.api.binder import PodRef
from kube.api.events import Event
from kube.api.pod_ender import Ended
from tests.support.extender_shell import Shell
from tests.support.kube_objects import a_pod

WHY = "gang lab/bert is ended for gang lab/gpt"


class Enders:
    """The API server, on which somebody has ended the pod or not."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended

    async def end(self, pod: PodRef, *, why: str, is_wanted: Callable[[], bool]) -> Ended:
        assert (pod.name, pod.uid, why, is_wanted()) == ("a", "uid-of-a", WHY, True)
        return self._ended


class Told(list[Event]):
    """Keeps what is to be written."""

    write = list.append


@pytest.mark.parametrize(
    ("ended", "told", "counted"),
    [(Ended.NOW, 1, 1), (Ended.BEFORE, 1, 0), (Ended.BY_OTHERS, 0, 0)],
    ids=["by us", "by the leader before us", "by its owner"],
)
async def test_an_end_is_told_and_counted_once(ended: Ended, told: int, counted: int) -> None:
    shell, events = Shell(), Told()
    pod = shell.pods.read(a_pod("a").with_gpus(8).in_vc("lab").bound_to("node-00"))
    assert pod is not None
    announcer = Announcer(events)  # type: ignore[arg-type] # all of it that is used
    ending = Ending(Enders(ended), announcer=announcer, metrics=shell.metrics)
    await ending.end(pod, why=WHY, is_wanted=lambda: True)
    assert [(one.reason, one.message, one.is_unique) for one in events] == [
        ("Preempted", WHY, True)
    ] * told
    assert shell.metrics.victims._value.get() == counted
