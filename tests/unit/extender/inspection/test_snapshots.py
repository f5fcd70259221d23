"""Views that are made while others go on."""

import asyncio

from extender.cluster.journal import DecisionContext
from extender.inspection.snapshots import Snapshots
from policy.submission import NodeName
from service.tasks import in_slices
from state.log.records import RowKind
from tests.support.cells.engine_calls import check
from tests.support.extender.shell import Shell
from tests.support.kube.pods import a_pod
from tests.support.policy.cluster_texts import hived_text

NODES = dict.fromkeys(NodeName(f"node-{index:02}") for index in range(4))


def place(shell: Shell, name: str) -> None:
    pod = shell.pods.read(a_pod(name).with_gpus(8).in_vc("lab"))
    assert pod is not None
    context = DecisionContext(kind=RowKind.PLACEMENT, now=0.0)
    shell.cluster.decide(shell.to_request(pod), candidate_nodes=NODES, context=context)


async def test_a_view_is_made_once_for_all_who_ask_and_again_when_things_change() -> None:
    shell = Shell()
    views = Snapshots(shell.cluster)
    place(shell, "a")
    first, second = await asyncio.gather(views.cells(), views.cells())
    assert first is second
    place(shell, "b")
    assert await views.cells() is not first
    assert [view.gang.name for view in await views.gangs()] == ["a", "b"]


async def test_what_changes_while_one_looks_does_no_harm() -> None:
    shell = Shell()
    place(shell, "a")
    looks = (
        shell.cluster.cells_stepwise,
        shell.cluster.vcs_stepwise,
        shell.cluster.gangs_stepwise,
        shell.cluster.nodes_stepwise,
    )
    for index, look in enumerate(looks):
        looking = look()
        next(looking)
        place(shell, f"b-{index}")
        shell.cluster.forget_member(shell.cluster.members.items()[0][0])
        shell.cluster.use_document(hived_text(lab=3))
        assert len(await in_slices(looking)) > 0
        check(shell.cluster._engine)


async def test_cells_and_vcs_are_shown_of_one_document() -> None:
    shell = Shell()
    views = Snapshots(shell.cluster)
    await views.status()
    shell.cluster.use_document(hived_text(lab=1, other=1))
    status = await views.status()
    assert list(status.vcs) == ["lab", "other"]
    assert status.topology is shell.cluster.topology
