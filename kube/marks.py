"""Every name that we read or write on Kubernetes objects, in one place.

The meaning of our own marks is in the architecture, section 6. Those of others are theirs; we only
read them, except HiveD's two placement annotations, which we write so that its users can move over.
"""

from typing import Final

# Ours.
DOMAIN: Final = "cellgate.io/"
"""What the names of all our labels and annotations begin with."""
VC_LABEL: Final = "cellgate.io/vc"
GROUP_LABEL: Final = "cellgate.io/group"
GANG_LABEL: Final = "cellgate.io/gang"
GANG_SIZE_LABEL: Final = "cellgate.io/gang-size"
GANG_MIN_LABEL: Final = "cellgate.io/gang-min"
LEAF_TYPE_LABEL: Final = "cellgate.io/leaf-type"
POLICY_LABEL: Final = "cellgate.io/policy"
LEADER_LABEL: Final = "cellgate.io/leader"
EPOCH_ANNOTATION: Final = "cellgate.io/epoch"
RENEW_ANNOTATION: Final = "cellgate.io/renew"
SUBMITTER_ANNOTATION: Final = "cellgate.io/submitter"
SUBMITTER_GROUPS_ANNOTATION: Final = "cellgate.io/submitter-groups"
REQUESTED_CLASS_ANNOTATION: Final = "cellgate.io/requested-class"
CLASS_ANNOTATION: Final = "cellgate.io/class"
"""The class that was decided: the pod's own must not be another one."""
DECISION_ANNOTATION: Final = "cellgate.io/decision"
REQUEST_ANNOTATION: Final = "cellgate.io/request"
"""What was decided upon, in one line: the pod must not ask for anything else when it is stored."""
SHAPED_ANNOTATION: Final = "cellgate.io/shaped"
"""What the Shaping document gave to a pod, a line for each thing."""
PLACEMENT_ANNOTATION: Final = "cellgate.io/placement"
UNCHARGED_ANNOTATION: Final = "cellgate.io/uncharged"
"""On a pod that our gate holds because its quota is used up: it is charged before it is planned."""
ALONE_ANNOTATION: Final = "cellgate.io/charged-alone"
"""On a pod whose PodGroup is no gang: the pod is charged for itself."""
WOKEN_ANNOTATION: Final = "cellgate.io/woken"
"""When a pod that waits was shown to kube-scheduler again; means nothing else."""
QUEUED_GATE: Final = "cellgate.io/queued"
SCHEDULER_NAME: Final = "cellgate-scheduler"

# Kubernetes.
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_LEAF_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")

# HiveD.
HIVED_SPEC_ANNOTATION: Final = "hivedscheduler.microsoft.com/pod-scheduling-spec"
HIVED_BIND_INFO_ANNOTATION: Final = "hivedscheduler.microsoft.com/pod-bind-info"
HIVED_ISOLATION_ANNOTATION: Final = "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"
HIVED_ENABLE_RESOURCE: Final = "hivedscheduler.microsoft.com/pod-scheduling-enable"

# Gangs of others, beside the native `spec.schedulingGroup.podGroupName`.
COSCHEDULING_LABEL: Final = "scheduling.x-k8s.io/pod-group"
COSCHEDULING_OLD_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
COSCHEDULING_LIGHT_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/name"
COSCHEDULING_LIGHT_MIN_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
KUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""A label; where the name is too long for one, an annotation of the same key."""
KUEUE_COUNT_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-total-count"
VOLCANO_ANNOTATION: Final = "scheduling.k8s.io/group-name"
VOLCANO_OWN_ANNOTATION: Final = "scheduling.volcano.sh/group-name"

PLACEMENT_ANNOTATIONS: Final = (
    PLACEMENT_ANNOTATION,
    HIVED_BIND_INFO_ANNOTATION,
    HIVED_ISOLATION_ANNOTATION,
)
"""Where a pod was put: written at its binding, never believed of a pod that is being created."""

GANG_MARKS: Final = (
    COSCHEDULING_LABEL,
    COSCHEDULING_OLD_LABEL,
    COSCHEDULING_LIGHT_LABEL,
    COSCHEDULING_LIGHT_MIN_LABEL,
    KUEUE_GROUP,
    KUEUE_COUNT_ANNOTATION,
    VOLCANO_ANNOTATION,
    VOLCANO_OWN_ANNOTATION,
)
"""By which others say which gang a pod is of: fixed once that was decided."""


def is_ours(annotation: object) -> bool:
    """Tell whether only Cellgate may write an annotation on a managed pod."""
    ours = (HIVED_SPEC_ANNOTATION, *PLACEMENT_ANNOTATIONS)
    return isinstance(annotation, str) and (annotation.startswith(DOMAIN) or annotation in ours)
