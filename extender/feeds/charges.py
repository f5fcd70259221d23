"""From a pod to what the ledger charges its gang.

A pod that runs and that the webhook did not decide on is charged by itself, in its own class: to
its submitter, else to its service account, and to the first quota group of that user. The id of its
charge is made from its UID, so that every leader makes the same one.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from extender.feeds.requests import GangSizeSource
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.classes import Classes
from policy.policy import Policy
from policy.quotas.charge import Charge
from policy.submission import GroupName

_UNDECIDED: Final = uuid.UUID("8f2c1c1e-6a0e-5c58-9a0b-6f0a4d6e3b57")
"""The namespace of the ids of charges without a decision."""


def to_charge(pod: ManagedPod, *, classes: Classes, sizes: GangSizeSource) -> Charge | None:
    """Return what a pod's gang is to be charged; None where the pod does not say enough."""
    class_name = pod.charged_class
    if pod.submitter is None or class_name is None:
        return None
    try:
        decision = uuid.UUID(pod.decision or "")
    except ValueError:
        return None
    leaf_count = pod.gang_leaf_count or pod.leaf_count * (sizes.size(pod) or 1)
    charge = Charge(
        decision=decision,
        gang=charged_gang(pod),
        user=pod.submitter,
        group=pod.charged_group,
        vc=pod.vc,
        class_name=class_name,
        is_high=classes.is_high(class_name),
        leaf_type=pod.leaf_type,
        leaf_count=pod.leaf_count,
        cpu_millis=pod.cpu_millis,
        memory_bytes=pod.memory_bytes,
        gang_size=1 if pod.is_charged_alone else pod.gang.size,
        rises_to=pod.rises_to if pod.effective_class is None else None,
        raised_from=pod.class_name if pod.effective_class is not None else None,
    )
    return charge if pod.is_charged_alone else charge.resized(leaf_count)


def to_undecided_charge(pod: ManagedPod, policy: Policy) -> Charge:
    """Return what a pod is to be charged that runs without a decision."""
    class_name = pod.class_name or policy.classes.default
    return Charge(
        decision=uuid.uuid5(_UNDECIDED, pod.uid),
        gang=charged_gang(pod),
        user=pod.charged_user,
        group=_find_group(pod, policy),
        vc=pod.vc,
        class_name=class_name,
        is_high=policy.classes.is_high(class_name),
        leaf_type=pod.leaf_type,
        leaf_count=pod.leaf_count,
        gang_size=1,
        cpu_millis=pod.cpu_millis,
        memory_bytes=pod.memory_bytes,
    )


def in_form(due: Charge, pod: ManagedPod) -> Charge:
    """Return a charge in the form in which its gang is placed, if the gang has alternatives."""
    return replace(due, vc=pod.vc, leaf_type=pod.leaf_type) if pod.alternatives else due


def with_amounts(due: Charge, pods: Sequence[ManagedPod]) -> Charge:
    """Return a charge with the CPU and memory of its pods; missing members are like the others."""
    counted = replace(
        due,
        each=None,
        leaf_count=sum(pod.leaf_count for pod in pods),
        cpu_millis=sum(pod.cpu_millis for pod in pods),
        memory_bytes=sum(pod.memory_bytes for pod in pods),
    )
    return replace(counted.resized(due.leaf_count), each=due.each)


def _find_group(pod: ManagedPod, policy: Policy) -> GroupName | None:
    """Return the first quota group of the user that pays; the pod's label is not checked."""
    groups = policy.identity.groups_of(pod.charged_user, pod.submitter_groups)
    ours = policy.identity.groups_of(pod.charged_user, ())
    found = policy.quotas.find(pod.charged_user, groups, named=None, path="", by_identity=ours)
    return found.name if found is not None else None
