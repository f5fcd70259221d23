"""Deployments and StatefulSets whose gang is never complete, or that cannot be updated. Pure.

Their pods are one gang, whichever ReplicaSet creates them. A StatefulSet with the default policy
creates a pod only when the one before it is ready; a Deployment with the default strategy creates
new pods before old ones have ended, and a gang accepts no pod beyond its size.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kube.admission.possibility import tell_never, warn
from kube.read.gangs import DeclaredGang, GangForm
from kube.values.objects import mapping
from policy.feasibility import ReplicaShape, find_never_whole, find_refused_replicas

_DEFAULT: Final = "25%"
_PERCENT: Final = re.compile(r"([0-9]{1,9})%")
_KINDS: Final = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")})


def check_rollout(
    obj: Mapping[str, Any], gang: DeclaredGang | None, *, refuses: bool
) -> Iterator[str]:
    """Yield warnings about replicas that do not match the gang of their pods.

    Raises RequestError if the gang is never complete and `refuses`.
    """
    if (obj.get("apiVersion"), obj.get("kind")) not in _KINDS or gang is None:
        return
    if gang.form is not GangForm.CELLGATE or gang.size is None:
        return
    shape = _read_shape(obj, gang_size=gang.size, gang_min=gang.min_size)
    yield from tell_never(list(find_never_whole(shape)), refuses=refuses)
    yield from map(warn, find_refused_replicas(shape))


def _read_shape(obj: Mapping[str, Any], *, gang_size: int, gang_min: int | None) -> ReplicaShape:
    spec = mapping(obj.get("spec"))
    replicas = _whole(spec.get("replicas"), default=1)
    shape = ReplicaShape(gang_size=gang_size, gang_min=gang_min, replicas=replicas)
    if obj.get("kind") == "StatefulSet":
        policy = spec.get("podManagementPolicy") or "OrderedReady"
        return dataclasses.replace(shape, is_one_by_one=policy == "OrderedReady")
    strategy = mapping(spec.get("strategy"))
    if strategy.get("type") == "Recreate":
        return shape
    rolling = mapping(strategy.get("rollingUpdate"))
    surge = _share(rolling.get("maxSurge", _DEFAULT), replicas, round_to=math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", _DEFAULT), replicas, round_to=math.floor)
    return dataclasses.replace(shape, max_surge=surge, max_unavailable=unavailable)


def _share(value: object, replicas: int, *, round_to: Callable[[float], int]) -> int:
    """Return a number of pods, or a percentage of the replicas; 0 for what is neither."""
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if found is not None:
        return round_to(int(found[1]) * replicas / 100)
    return _whole(value, default=0)


def _whole(value: object, *, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
