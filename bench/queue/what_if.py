"""What a what-if costs: one day of a large cluster, through rules, quotas, planner and engine.

Ten VCs of equal size, thirty users in ten groups whose gangs are lowered or wait over quota, gangs
of up to 128 leaf cells, a quarter of them opportunistic. They ask for a little more than the whole
cluster. The two runs of a what-if are played at the same time, so that it takes as long as the
slower one.
"""

import time
from collections.abc import Iterator
from math import exp
from random import Random
from typing import Final

from bench.core.clusters import LEAVES, RACK, build_racks
from bench.report import SEED, Result
from policy.parser import DocumentKind
from policy.policy import Policy
from policy.store import PolicyText, build_policy
from policy.submission import ClassName, GangKey, GroupName, UserName, VcName
from policy.topology import Promise, Topology, VirtualCluster
from timemachine.compare import compare
from timemachine.model import Arrival, Run, World
from timemachine.play import play
from timemachine.worlds import nodes_of

_DAY: Final = 86400.0
_VCS: Final = 10
_GROUPS: Final = 10
_USERS: Final = 30
_NODE_LEVEL: Final = 3
_LOAD: Final = 1.1
_GANGS_PER_NODE: Final = 4
_SPREAD: Final = 1.0
_OPPORTUNISTIC: Final = 0.25
_SIZES: Final = {1: 0.25, 4: 0.1, 8: 0.35, 16: 0.2, 32: 0.07, 64: 0.025, 128: 0.005}
_HEAD: Final = "apiVersion: cellgate.io/v1\nkind: "
_CLASSES: Final = f"""{_HEAD}Classes
classes: [{{name: prod, cellPriority: 100, high: true}}, {{name: oppo, cellPriority: -1}}]
default: prod
"""
_RULES: Final = f"""{_HEAD}Rules
rules: [{{current: ">64", when: "user.startsWith('user-2')", then: oppo}}]
"""


def measure(*, is_quick: bool) -> list[Result]:
    """Play a day of 500 nodes with 2,000 gangs and, if there is time, of 5,000 with 20,000."""
    sizes = (500,) if is_quick else (500, 5_000)
    return [result for nodes in sizes for result in _measure(nodes)]


def _measure(nodes: int) -> list[Result]:
    world = _world(nodes)
    arrivals = list(_arrivals(nodes))
    began = time.process_time()
    run = play(arrivals, world)
    played = time.process_time()
    compare(run, run, source="bench")
    compared = time.process_time()
    case: dict[str, int | str] = {"nodes": nodes, "gangs": len(arrivals)}
    values = {
        "play_cpu_s": played - began,
        "compare_cpu_s": compared - played,
        "gang_ms": 1000 * (played - began) / len(arrivals),
        **_figures(run),
    }
    return [Result(case=case, metric=metric, value=value) for metric, value in values.items()]


def _figures(run: Run) -> dict[str, float]:
    """Return what shows that the day was a busy one."""
    return {
        "utilisation": run.utilisation,
        "waited": sum(run.wait(fate) > 0.0 for fate in run.fates),
        "preemptions": sum(fate.preemptions for fate in run.fates),
        "lowered": sum(fate.is_lowered for fate in run.fates),
        "never_started": sum(fate.started is None for fate in run.fates),
    }


def _world(nodes: int) -> World:
    chain = build_racks(nodes, rack=RACK)
    promise = Promise(chain=chain.name, level=_NODE_LEVEL, count=nodes // _VCS)
    vcs = {vc: VirtualCluster(name=vc, promises=(promise,)) for vc in map(_vc, range(_VCS))}
    topology = Topology(chains={chain.name: chain}, vcs=vcs)
    policy = _policy(nodes * LEAVES)
    return World(title="bench", policy=policy, topology=topology, nodes=nodes_of(topology))


def _policy(leaf_cells: int) -> Policy:
    """Return rules and quotas; each group may hold a little more than its share."""
    most = int(1.2 * leaf_cells / _GROUPS)
    groups = "\n".join(
        f"- {{name: group-{one}, over: {'queue' if one % 2 else 'oppo'}, "
        f"limits: {{leafCells: {most}}}}}"
        for one in range(_GROUPS)
    )
    texts = {
        DocumentKind.CLASSES: _CLASSES,
        DocumentKind.RULES: _RULES,
        DocumentKind.QUOTAS: f"{_HEAD}Quotas\ngroups:\n{groups}\n",
    }
    return build_policy(
        PolicyText(kind=kind, source=f"file {kind}", text=text) for kind, text in texts.items()
    )


def _arrivals(nodes: int) -> Iterator[Arrival]:
    random = Random(SEED)
    number = _GANGS_PER_NODE * nodes
    sizes = random.choices(list(_SIZES), list(_SIZES.values()), k=number)
    runs = [exp(random.gauss(0.0, _SPREAD)) for _ in sizes]
    asked = sum(size * run for size, run in zip(sizes, runs, strict=True))
    second = _LOAD * nodes * LEAVES * _DAY / asked
    for index, (size, run) in enumerate(zip(sizes, runs, strict=True)):
        user = random.randrange(_USERS)
        whole, rest = divmod(size, LEAVES)
        is_borrowing = random.random() < _OPPORTUNISTIC
        yield Arrival(
            gang=GangKey("bench", f"train-{index:05}"),
            submitted=random.uniform(0.0, _DAY),
            run_seconds=run * second,
            sizes=(LEAVES,) * whole + (rest,) * (rest > 0),
            user=UserName(f"user-{user}"),
            groups=(GroupName(f"group-{user % _GROUPS}"),),
            requested_class=ClassName("oppo" if is_borrowing else "prod"),
            vc=_vc(random.randrange(_VCS)),
        )


def _vc(index: int) -> VcName:
    return VcName(f"vc-{index}")
