"""Bindings that fail, are in doubt, or are asked for twice."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack

import pytest

from extender.cells.model import ReasonCode
from extender.cells.wording import explain
from extender.cluster.journal import DecisionContext
from extender.planning import pending_writes
from extender.planning.held_calls import HeldCalls
from extender.planning.pending_writes import PendingWrites
from extender.queue.held_bindings import BIND, GivenUp, Verdict
from extender.verbs.bind import BindVerb
from extender.verbs.unmanaged_pods import UnmanagedPods
from extender.verbs.wire import BindArguments
from kube.api.binder import PodRef
from kube.api.client import KubeError
from policy.errors import RequestError
from policy.submission import GangKey, NodeName, PodUid
from service.clock import Clock
from state.log.records import RowKind
from tests.support.extender.leading import AlwaysLeading
from tests.support.extender.shell import Shell
from tests.support.kube.pods import a_pod

UID = PodUid("uid-of-a")
GANG = GangKey("lab", "a")
NODES = dict.fromkeys(NodeName(f"node-{index:02}") for index in range(4))


class SlowBinder:
    """An API server that answers when it is told to, and then with these errors, if any."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.errors: list[KubeError] = []
        self.versions: list[str | None] = []

    async def bind(self, pod: PodRef, *, node: str, annotations: Mapping[str, str]) -> None:
        self.versions.append(pod.resource_version)
        await self.may_answer.wait()
        if self.errors:
            raise self.errors.pop()


class Bindings:
    """A leased pod `a`, and its binding."""

    def __init__(self) -> None:
        self.shell = Shell(lease_seconds=60)
        self.shell.recover()
        self.shell.pods.upsert(a_pod("a").with_gpus(8).in_vc("lab"))
        pod = self.shell.pods.get(UID)
        assert pod is not None
        self.shell.cluster.decide(
            self.shell.to_request(pod),
            candidate_nodes=NODES,
            context=DecisionContext(kind=RowKind.PLACEMENT, now=0.0),
        )
        self.binder = SlowBinder()
        self.says: Verdict | None = BIND
        self.pending = PendingWrites()
        self.calls = HeldCalls(self.pending)
        self.unmanaged = UnmanagedPods()
        self.binding = BindVerb(
            leading=AlwaysLeading(),  # type: ignore[arg-type] # all of it that is used
            cluster=self.shell.cluster,
            pods=self.shell.pods,
            binder=self.binder,
            holds=self,
            unmanaged=self.unmanaged,
            metrics=self.shell.metrics,
            clock=Clock(monotonic=lambda: 0.0),
        )

    def verdict(
        self, uid: PodUid, *, is_open: Callable[[], bool]
    ) -> AbstractAsyncContextManager[Verdict]:
        """What the planner says: at once that the pod may be bound, or later what it is told."""
        return self.calls.asked(uid, is_open=is_open, ask=self.answer)

    def answer(self) -> None:
        if self.says is not None:
            self.calls.deliver({UID: self.says})

    def bind(self) -> asyncio.Task[dict[str, str]]:
        body = {"PodName": "a", "PodNamespace": "lab", "PodUID": UID, "Node": "node-00"}
        return asyncio.create_task(self.binding.bind(BindArguments.model_validate(body)))

    @property
    def is_kept(self) -> bool:
        self.shell.cluster.expire(now=1_000.0)
        return self.shell.cluster.has_place(UID)


@pytest.mark.parametrize(
    ("status", "is_kept"),
    [(0, True), (500, True), (404, False), (409, False)],
    ids=["no answer", "a fault", "no such pod", "another pod"],
)
async def test_what_may_be_bound_is_kept_and_what_is_not_expires(
    status: int, *, is_kept: bool
) -> None:
    world = Bindings()
    world.binder.errors = [KubeError("no", status=status)]
    world.binder.may_answer.set()
    assert await world.bind() == {"Error": "no"}
    assert world.is_kept is is_kept


async def test_who_asks_twice_is_bound_once_and_protected_until_both_are_answered() -> None:
    world = Bindings()
    first, second = world.bind(), world.bind()
    await asyncio.sleep(0)
    assert world.calls.under_way[UID] == 2
    first.cancel()
    await asyncio.wait([first])
    assert UID in world.calls.under_way
    world.binder.may_answer.set()
    assert await second == {"Error": ""}
    assert UID not in world.calls.under_way
    assert world.is_kept


async def test_a_binding_names_the_version_that_is_being_written_when_it_is_asked_for() -> None:
    bindings = Bindings()
    bindings.binder.may_answer.set()
    with bindings.pending.writing(UID):
        asked = bindings.bind()
        await asyncio.sleep(0)
        bindings.shell.pods.note_version(UID, "99")
    assert await asked == {"Error": ""}
    assert bindings.binder.versions == ["99"]


async def test_a_binding_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_writes, "_PATIENCE_SECONDS", 0.0)
    bindings = Bindings()
    bindings.binder.may_answer.set()
    with bindings.pending.writing(UID):
        assert await bindings.bind() == {"Error": ""}


async def test_nobody_is_bound_to_a_node_that_is_gone() -> None:
    """kube-scheduler may not have heard of it yet; Kubernetes itself would take the binding."""
    world = Bindings()
    world.shell.cluster.forget_node(NodeName("node-00"))
    world.binder.may_answer.set()
    with pytest.raises(RequestError, match="node node-00 of pod lab/a does not exist any more"):
        await world.bind()


async def test_a_pod_may_be_written_twice_at_once() -> None:
    """The later write is waited for, and the leader does not end of the earlier one's end."""
    both = PendingWrites()
    with ExitStack() as earlier:
        earlier.enter_context(both.writing(UID))
        with both.writing(UID):
            earlier.close()
            waiting = asyncio.create_task(both.wait(UID))
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting


async def test_a_held_pod_is_bound_once_its_gang_may_be() -> None:
    world = Bindings()
    world.says = None
    world.binder.may_answer.set()
    asked = world.bind()
    await asyncio.sleep(0)
    assert not world.calls.under_way
    world.calls.deliver({UID: Verdict(gang=GANG)})
    assert UID in world.calls.under_way, "its lease must not end from now on"
    assert await asked == {"Error": ""}
    assert not world.calls.under_way


async def test_a_pod_of_a_gang_that_was_given_up_is_not_bound() -> None:
    world = Bindings()
    world.says = None
    asked = world.bind()
    await asyncio.sleep(0)
    reason = explain(ReasonCode.BINDING_GIVEN_UP, gang=str(GANG), cause="silent")
    world.calls.deliver({UID: Verdict(gang=GANG, given_up=GivenUp.SILENT, reason=reason)})
    answer = await asked
    assert "not all members passed kube-scheduler's checks in time" in answer["Error"]
    assert world.binder.versions == []


async def test_a_call_that_is_repeated_ends_the_one_before() -> None:
    """kube-scheduler has given up the first call; its connection may still look open."""
    world = Bindings()
    world.says = None
    world.binder.may_answer.set()
    first = world.bind()
    await asyncio.sleep(0)
    second = world.bind()
    await asyncio.sleep(0)
    with pytest.raises(RequestError, match="has asked again"):
        await first
    world.calls.deliver({UID: BIND})
    assert await second == {"Error": ""}
    assert not world.calls.under_way


async def test_a_call_that_ends_in_the_moment_of_its_verdict_protects_no_lease() -> None:
    world = Bindings()
    world.says = None
    asked = world.bind()
    await asyncio.sleep(0)
    world.calls.deliver({UID: BIND})
    asked.cancel()
    await asyncio.wait([asked])
    assert not world.calls.under_way


async def test_a_pod_without_leaf_cells_is_bound_as_it_is() -> None:
    world = Bindings()
    world.binder.may_answer.set()
    body = {"PodName": "web", "PodNamespace": "lab", "PodUID": "uid-of-web", "Node": "node-00"}
    arguments = BindArguments.model_validate(body)
    with pytest.raises(RequestError, match="holds no lease"):
        await world.binding.bind(arguments)
    world.unmanaged.put(PodUid("uid-of-web"))
    assert await world.binding.bind(arguments) == {"Error": ""}
