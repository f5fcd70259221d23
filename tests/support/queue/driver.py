"""A planner's world, driven a step at a time."""

from extender.queue.model import Action
from policy.placement import Placement
from policy.queues.alternatives import Alternative
from policy.submission import GangKey, NodeName, PodUid
from tests.support.cells.builders import GangBuilder, a_cluster
from tests.support.queue.planner_world import PlannerWorld


def world_of_two_vcs() -> PlannerWorld:
    """Two racks of two nodes of four leaf cells, half of them promised to each of two VCs."""
    cluster = a_cluster("2 racks x 2 nodes x 4").promising("a", node=2).promising("b", node=2)
    return PlannerWorld(cluster.build())


def submit(
    world: PlannerWorld,
    gang: GangBuilder,
    *,
    missing: int = 0,
    alternatives: tuple[Alternative, ...] = (),
) -> None:
    members = gang.members()
    for request in members[missing:]:
        world.create(request, size=len(members), alternatives=alternatives)
    deliver(world)


def deliver(world: PlannerWorld) -> None:
    for uid in list(world.undelivered):
        world.deliver(uid)


def step(world: PlannerWorld) -> list[Action]:
    world.step()
    return list(world.actions)


def notices(world: PlannerWorld) -> dict[str, str]:
    """Step, and return the new reasons by gang: empty for a gang that waits no longer."""
    found = world.think()
    return {gang.name: tell.reason.text if tell else "" for gang, tell in found.items()}


def run(world: PlannerWorld) -> None:
    """Do all that is asked for, and bind what can be bound."""
    for _ in range(3):
        world.step()
        while world.actions:
            world.perform(0, is_done=True, is_told_done=True)
        world.bind_all()
        deliver(world)
    world.check()


def nodes_of_gang(world: PlannerWorld, gang: str) -> list[NodeName | None]:
    return [pod.seen_as.node for pod in world.gangs().get(GangKey("ns", gang), [])]


def is_whole(world: PlannerWorld, gang: str) -> bool:
    found = nodes_of_gang(world, gang)
    return bool(found) and None not in found


def placement(world: PlannerWorld, uid: str) -> Placement:
    placement = world.engine.placement(PodUid(uid))
    assert placement is not None
    return placement


def release_all(world: PlannerWorld) -> None:
    """Release every gang that may start; no pod is bound."""
    world.step()
    while world.actions:
        world.perform(0, is_done=True, is_told_done=True)
    deliver(world)


def is_released(world: PlannerWorld, uid: str) -> bool:
    return not world.pods[PodUid(uid)].seen_as.is_gated
