"""What can never start, in words: larger than its VC, quota or any node, or never complete.

Each sentence says what is asked for, what there is at most, and what to change. A sentence is
certain as far as the inputs are: capacities are upper bounds, and current usage does not matter.
The Rules document says whether such a workload is refused or its submitter is warned.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policy.capacity import Capacity, ChainCapacity, Share
from policy.pod_resources import Amounts, show_amount
from policy.quotas.limits import Limit, Measure
from policy.quotas.quota_table import QUEUE, QuotaGroup
from policy.submission import LeafType, VcName
from policy.wording import count_of, listing, name

NEVER: Final = "can never start: "
_LISTED: Final = 8
_NOTHING: Final = Share(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a gang needs to start."""

    vc: VcName
    leaf_type: LeafType | None = None
    leaf_count: int
    """Leaf cells of all members that it needs to start."""
    largest_member: int
    is_guaranteed: bool
    """Whether it counts on the cells of its VC; an opportunistic gang may use any."""
    amounts: Amounts = ()
    """What one pod requests of each resource beside leaf cells."""


def find_never(wanted: Wanted, capacity: Capacity) -> Iterator[str]:
    """Yield why a gang never starts: because of its leaf type, its size, or that of a member."""
    yield from _find_too_much(wanted, dict(capacity.largest))
    yield from _find_no_cells(wanted, capacity)


def _find_too_much(wanted: Wanted, largest: Mapping[str, int]) -> Iterator[str]:
    """Yield what one pod requests beyond what any node has."""
    for resource, amount in wanted.amounts if wanted.leaf_count else ():
        if resource in largest and amount > largest[resource]:
            asked, most = (show_amount(resource, one) for one in (amount, largest[resource]))
            yield f"one pod requests {asked}, but the largest node has {most}; request less"


def _find_no_cells(wanted: Wanted, capacity: Capacity) -> Iterator[str]:
    if not wanted.leaf_count:
        return
    chains = [one for one in capacity.chains if wanted.leaf_type in (None, one.leaf_type)]
    if not chains:
        missing = f"no node has leaf type {name(wanted.leaf_type or '')}"
        yield f"{missing}; {_types_hint(capacity.chains)}"
        return
    shares = [_share(wanted, chain) for chain in chains]
    if not any(share.leaf_count for share in shares):
        yield _promised_nothing(wanted, capacity)
        return
    most = max(share.leaf_count for share in shares)
    if wanted.leaf_count > most:
        yield f"{_too_much(wanted, most)}; {_smaller(wanted)}"
    largest = max(share.largest for share in shares)
    if wanted.largest_member > largest:
        yield _member_too_large(wanted, largest)


def _share(wanted: Wanted, chain: ChainCapacity) -> Share:
    return chain.of_vc.get(wanted.vc, _NOTHING) if wanted.is_guaranteed else chain.all_cells


def _types_hint(chains: Sequence[ChainCapacity]) -> str:
    known = list(dict.fromkeys(name(chain.leaf_type) for chain in chains))[:_LISTED]
    return f"the label cellgate.io/leaf-type may be one of {listing(known)}"


def _of_type(wanted: Wanted) -> str:
    return f" of type {name(wanted.leaf_type)}" if wanted.leaf_type else ""


def _promised_nothing(wanted: Wanted, capacity: Capacity) -> str:
    vc = name(wanted.vc)
    own = [chain for chain in capacity.chains if wanted.vc in chain.of_vc]
    if own:
        return f"VC {vc} was promised no leaf cells{_of_type(wanted)}; {_types_hint(own)}"
    hint = "use an opportunistic class, or another VC (label cellgate.io/vc)"
    return f"VC {vc} was promised no leaf cells, and the class is a guaranteed one; {hint}"


def _too_much(wanted: Wanted, most: int) -> str:
    asked = f"it needs {count_of(wanted.leaf_count, 'leaf cell')}{_of_type(wanted)}"
    if not wanted.is_guaranteed:
        return f"{asked}, but one gang can use at most {most} of the cluster"
    return f"{asked}, but VC {name(wanted.vc)} was promised at most {most} that one gang can use"


def _smaller(wanted: Wanted) -> str:
    return "make it smaller" + (", or use an opportunistic class" if wanted.is_guaranteed else "")


def _member_too_large(wanted: Wanted, largest: int) -> str:
    asked = f"one pod asks for {count_of(wanted.largest_member, 'leaf cell')}{_of_type(wanted)}"
    cell = f"cell of VC {name(wanted.vc)} within one node" if wanted.is_guaranteed else "node"
    return f"{asked}, but the largest {cell} has {largest}; divide the work among more pods"


def find_over_limit(
    group: QuotaGroup, limits: Sequence[Limit], *, wanted: Wanted, is_high: bool
) -> Iterator[str]:
    """Yield the limit that a gang exceeds by itself, if gangs over it wait instead of failing."""
    for limit in limits if group.over == QUEUE else ():
        is_meant = {
            Measure.LEAF_CELLS: True,
            Measure.LEAF_CELLS_HIGH: is_high,
            Measure.LEAF_CELLS_OF_TYPE: limit.leaf_type == wanted.leaf_type,
        }.get(limit.measure, False)
        if is_meant and wanted.leaf_count > limit.most:
            asked = f"it needs {count_of(wanted.leaf_count, 'leaf cell')}{_of_type(wanted)}"
            holder = f"group {name(group.name)}"
            if limit.scope.user is not None:
                holder = f"{name(limit.scope.user)} in {holder}"
            yield f"{asked}, but the quota of {holder} is {limit.most:g}; make it smaller"
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """How many pods a Job has at once, beside the gang that its template names."""

    gang_size: int
    gang_min: int | None
    parallelism: int
    completions: int | None


def find_incomplete(job: JobShape) -> Iterator[str]:
    """Yield why the gang of a Job is never complete."""
    needed = job.gang_min or job.gang_size
    fields = {"parallelism": job.parallelism, "completions": job.completions}
    stated = {key: count for key, count in fields.items() if count is not None}
    field = min(stated, key=lambda key: stated[key])
    if 0 < stated[field] < needed:
        label = "gang-min" if job.gang_min else "gang-size"
        at_once = f"{field} is {stated[field]}, so it never has {needed} pods at once"
        yield f"cellgate.io/{label} is {needed}, but {at_once}; use the same number for both"


def find_surplus(job: JobShape) -> Iterator[str]:
    """Yield which pods of a Job are too many for its gang."""
    at_once = min(job.parallelism, job.completions or job.parallelism)
    if at_once > job.gang_size:
        more = count_of(at_once - job.gang_size, "pod")
        numbers = f"parallelism is {job.parallelism}, but cellgate.io/gang-size is {job.gang_size}"
        yield f"{numbers}: {more} cannot start before a member of the gang has ended"


def describe_deadline(seconds: int, *, path: str) -> str:
    """Say that the deadline of a whole Job counts while it waits."""
    counts = f"{path}.activeDeadlineSeconds ({seconds}) counts the time that the Job waits, too"
    return f"{counts}; {path}.template.spec.activeDeadlineSeconds counts from the start of each pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaShape:
    """How a Deployment or StatefulSet creates its pods, beside the gang that its template names."""

    gang_size: int
    gang_min: int | None
    replicas: int
    is_one_by_one: bool = False
    """Whether a pod is created only when the one before it is ready."""
    max_surge: int = 0
    """Pods that an update creates before old ones have ended."""
    max_unavailable: int = 1
    """Pods that an update ends before new ones are ready."""


def find_never_whole(shape: ReplicaShape) -> Iterator[str]:
    """Yield why the gang of replicas is never complete, or can never be updated."""
    needed = shape.gang_min or shape.gang_size
    label = "gang-min" if shape.gang_min else "gang-size"
    if 0 < shape.replicas < needed:
        numbers = f"is {needed}, but replicas is {shape.replicas}"
        yield f"cellgate.io/{label} {numbers}; use the same number for both"
    elif shape.is_one_by_one and needed > 1:
        waits = "podManagementPolicy OrderedReady creates each pod when the one before is ready"
        yield f"cellgate.io/{label} is {needed}, but {waits}; set podManagementPolicy: Parallel"


def find_refused_replicas(shape: ReplicaShape) -> Iterator[str]:
    """Yield which pods of replicas are refused, because the gang may not have so many."""
    if shape.replicas > shape.gang_size:
        more = count_of(shape.replicas - shape.gang_size, "pod")
        numbers = f"replicas is {shape.replicas}, but cellgate.io/gang-size is {shape.gang_size}"
        yield f"{numbers}: {more} cannot start before a member of the gang has ended"
        return
    surplus = shape.replicas + shape.max_surge - shape.gang_size
    if not shape.max_surge or surplus <= 0:
        return
    creates = f"an update creates {count_of(surplus, 'pod')} beyond cellgate.io/gang-size"
    until = " until old pods have ended" if shape.max_unavailable else ", so the update never ends"
    change = "set maxSurge: 0 and maxUnavailable: 1, or strategy type Recreate"
    yield f"{creates}: Cellgate refuses such pods{until}; {change}"
