"""What gated pods and their workloads are told while their gang waits."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest

from extender.cells.model import Reason, ReasonCode
from extender.cells.wording import explain
from kube import marks
from kube.api.binder import PodRef
from policy.errors import BackendError
from policy.submission import GangKey
from tests.support.extender.gang_pods import member
from tests.support.extender.shell import Shell
from tests.support.kube.objects import uid_of
from tests.support.kube.pods import PodBuilder
from tests.support.kube.workloads import workload_mark

BERT = GangKey("lab", "bert")
LASTING = (
    "gang lab/bert needs 2 x 8 leaf cells, each member on one node; there is not enough room now; "
    "starts once enough leaf cells are free"
)


class Messages:
    """Keeps what is written on pods, and shows it as the API server would."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.written: list[tuple[str, str]] = []
        self.is_failing = False
        self.on_write: Callable[[], None] = lambda: None

    async def write(self, pod: PodRef, message: str) -> str:
        self.on_write()
        if self.is_failing:
            raise BackendError("no answer")
        assert pod.resource_version == self._shell.pod(pod.name).resource_version
        self.written.append((pod.name, message))
        return str(int(pod.resource_version or "0") + 1)


def no_room(room: int) -> Reason:
    return explain(ReasonCode.NO_ROOM, gang="lab/bert", needs=((2, 8),), members=2, room=room)


def of_job(pod: PodBuilder) -> PodBuilder:
    return pod.annotated(marks.WORKLOAD_ANNOTATION, workload_mark("bert"))


def saying(pod: PodBuilder, message: str) -> PodBuilder:
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    return pod.with_status(conditions=[{**condition, "message": message}])


@pytest.fixture
def shell() -> Shell:
    shell = Shell()
    shell.recover()
    for name in ("bert-0", "bert-1"):
        shell.pods.upsert(member(name, gang="bert").gated())
    return shell


@pytest.fixture
def messages(shell: Shell) -> Messages:
    return Messages(shell)


async def after(shell: Shell, messages: Messages, seconds: float) -> list[tuple[str, str]]:
    """What was written until then."""
    shell.now += seconds
    shell.outcomes.notes.repeat_events()
    await shell.outcomes.notes.write_due(messages, writing=lambda _: nullcontext())
    return messages.written


async def test_every_gated_member_says_why_it_waits(shell: Shell, messages: Messages) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    assert await after(shell, messages, 1) == []
    assert await after(shell, messages, 3) == [("bert-0", LASTING), ("bert-1", LASTING)]
    assert await after(shell, messages, 60) == [("bert-0", LASTING), ("bert-1", LASTING)]


async def test_a_gang_that_starts_at_once_is_not_written_to(
    shell: Shell, messages: Messages
) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    shell.outcomes.gang_resumed(BERT)
    assert await after(shell, messages, 3) == []


async def test_a_member_that_is_created_later_is_told_too(shell: Shell, messages: Messages) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    await after(shell, messages, 3)
    shell.pods.upsert(member("bert-2", gang="bert").gated())
    assert (await after(shell, messages, 3))[2:] == [("bert-2", LASTING)]


async def test_a_pod_that_says_it_already_is_left_alone(shell: Shell, messages: Messages) -> None:
    """Such as after a change of leaders: neither a write nor an Event for each of 2,000 gangs."""
    for name in ("bert-0", "bert-1"):
        shell.pods.upsert(saying(member(name, gang="bert").gated(), LASTING))
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(0))
    assert await after(shell, messages, 60) == []
    assert shell.events.said("Waiting") == []
    await after(shell, messages, 1800)
    assert shell.events.said("Waiting") == [("bert-0", LASTING)]


async def test_another_reason_is_written_once_it_lasts(shell: Shell, messages: Messages) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    await after(shell, messages, 3)
    for name in ("bert-0", "bert-1"):
        shell.pods.upsert(saying(member(name, gang="bert").gated(), LASTING))
    quota = explain(ReasonCode.QUOTA, gang="lab/bert", group="g", leaf_cells=16)
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), quota)
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(0))
    assert len(await after(shell, messages, 15)) == 2
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), quota)
    assert len(await after(shell, messages, 14)) == 2
    assert (await after(shell, messages, 1))[2:] == [("bert-0", quota.text), ("bert-1", quota.text)]


async def test_a_write_that_fails_is_repeated(shell: Shell, messages: Messages) -> None:
    messages.is_failing = True
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    assert await after(shell, messages, 3) == []
    messages.is_failing = False
    assert await after(shell, messages, 14) == []
    assert len(await after(shell, messages, 1)) == 2


async def test_a_pod_that_is_released_while_others_are_written_to_is_left_alone(
    shell: Shell, messages: Messages
) -> None:
    names = [f"many-{index}" for index in range(12)]
    for name in names:
        shell.pods.upsert(member(name, gang="bert", size=14).gated())
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    messages.on_write = lambda: shell.pods.upsert(member(names[-1], gang="bert", size=14))
    written = [name for name, _ in await after(shell, messages, 3)]
    assert written == ["bert-0", "bert-1", *names[:-1]]


async def test_many_pods_are_written_a_few_at_a_time(shell: Shell, messages: Messages) -> None:
    for index in range(120):
        shell.pods.upsert(member(f"many-{index}", gang="bert", size=122).gated())
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    assert len(await after(shell, messages, 3)) == 50
    assert len(await after(shell, messages, 1)) == 100
    assert len(await after(shell, messages, 1)) == 122


async def test_an_event_is_repeated_every_half_hour(shell: Shell, messages: Messages) -> None:
    shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
    for _ in range(4):
        await after(shell, messages, 1000)
    assert [text for _, text in shell.events.said("Waiting")] == [no_room(1).text, LASTING, LASTING]


async def test_a_reason_that_comes_back_is_told_once_in_half_an_hour(
    shell: Shell, messages: Messages
) -> None:
    quota = explain(ReasonCode.QUOTA, gang="lab/bert", group="g", leaf_cells=16)
    for _ in range(5):
        shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), no_room(1))
        shell.outcomes.gang_waits(BERT, shell.pod("bert-0"), quota)
    assert len(shell.events.said("Waiting")) == 2


async def test_a_workload_is_told_once_however_many_gangs_it_has(shell: Shell) -> None:
    for index in range(3):
        shell.pods.upsert(of_job(member(f"p{index}", gang=f"g{index}", size=1).gated()))
        pod = shell.pod(f"p{index}")
        shell.outcomes.gang_waits(pod.gang.key, pod, no_room(0))
    told = [event for event in shell.events if event.kind == "Job"]
    assert [(event.name, event.uid, event.reason) for event in told] == [
        ("bert", uid_of("bert"), "Waiting")
    ]
    assert len([event for event in shell.events if event.kind == "Pod"]) == 3
