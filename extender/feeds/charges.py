"""From a pod to what the ledger charges its gang."""

import uuid

from extender.feeds.requests import GangSizeSource
from kube.read.managed_pod import ManagedPod, charged_gang
from policy.classes import Classes
from state.ledger.ledger import Charge


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
    return Charge(
        decision=decision,
        gang=charged_gang(pod),
        user=pod.submitter,
        group=pod.charged_group,
        vc=pod.vc,
        class_name=class_name,
        is_high=classes.is_high(class_name),
        leaf_type=pod.leaf_type,
        leaf_count=pod.leaf_count if pod.is_charged_alone else leaf_count,
        gang_size=1 if pod.is_charged_alone else pod.gang.size,
        rises_to=pod.rises_to if pod.effective_class is None else None,
        raised_from=pod.class_name if pod.effective_class is not None else None,
    )
