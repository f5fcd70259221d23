"""Small worlds with policies given as text, arrivals, and how they fared."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from extender.cells.model import NodeCell
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, GroupName, LeafType, UserName, VcName
from tests.support.cells.builders import ClusterBuilder, a_cluster, nodes_of
from tests.support.policy.documents import CLASSES_TEXT, HEAD
from timemachine.model import Arrival, Fate, Run, World
from timemachine.play import play

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def policy_of(**documents: str) -> Policy:
    """A policy of documents without their heads: `rules="rules: …"`; classes prod, test, oppo."""
    texts = {"classes": CLASSES_TEXT, **documents}
    return build_policy(
        PolicyText(
            kind=DocumentKind(kind.capitalize()),
            source=f"file {kind}",
            text=text
            if kind == "cluster" or text.startswith(HEAD)
            else f"{HEAD}{kind.capitalize()}\n{text}",
        )
        for kind, text in texts.items()
    )


def two_vcs() -> ClusterBuilder:
    """Two racks of two nodes of eight; one rack is promised to VC a, the other one to b."""
    cluster = a_cluster("2 racks x 2 nodes x 8")
    return cluster.promising("a", rack=1).promising("b", rack=1)


def a_world(
    cluster: ClusterBuilder | None = None, *, title: str = "now", **documents: str
) -> World:
    """A world whose nodes have eight leaf cells each."""
    topology = (cluster or two_vcs()).build()
    return World(
        title=title,
        policy=policy_of(**documents),
        topology=topology,
        nodes=[
            NodeCell(name=node, leaf_type=LeafType("gpu"), leaf_count=8)
            for node in nodes_of(topology)
        ],
    )


def an_arrival(
    name: str,
    *sizes: int,
    at: float = 0.0,
    runs: float = HOUR,
    vc: str = "a",
    asks: str = "prod",
    user: str = "alice",
    groups: Sequence[str] = (),
    **more: Any,
) -> Arrival:
    """A gang of VC a that runs for an hour."""
    arrival = Arrival(
        gang=GangKey("team", name),
        submitted=at,
        run_seconds=runs,
        sizes=sizes or (8,),
        user=UserName(user),
        groups=tuple(map(GroupName, groups)),
        requested_class=ClassName(asks),
        vc=VcName(vc),
    )
    return replace(arrival, **more)


def played(world: World, *arrivals: Arrival) -> dict[str, Fate]:
    """Play arrivals, and return how each fared, by name."""
    return fates_of(play(arrivals, world))


def fates_of(run: Run) -> dict[str, Fate]:
    """Return the fates of a run by the name of the gang."""
    return {fate.arrival.gang.name: fate for fate in run.fates}


def starts_of(run: Run) -> dict[str, float | None]:
    """Return when each gang started."""
    return {name: fate.started for name, fate in fates_of(run).items()}
