"""The names of all labels, annotations, gates and resources that we read or write.

docs/architecture.md explains our own. Those of other projects are only read, except HiveD's two
placement annotations, which are written so that its users can move over.
"""

from typing import Final

# Ours.
DOMAIN: Final = "cellgate.io/"
"""The prefix of all our labels and annotations."""
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
LEAF_CELLS_ANNOTATION: Final = "cellgate.io/leaf-cells"
"""On a native PodGroup: the leaf cells that each of its pods will ask for."""
CLASS_ANNOTATION: Final = "cellgate.io/class"
"""The class that was decided: the pod must have this one."""
DECISION_ANNOTATION: Final = "cellgate.io/decision"
REQUEST_ANNOTATION: Final = "cellgate.io/request"
"""The request that was decided on, in one line: the stored pod must ask for exactly this."""
SHAPING_LABEL: Final = "cellgate.io/shaping"
"""On a namespace whose pods without leaf cells are shaped: `enabled`. The API server reads it."""
SHAPED_ANNOTATION: Final = "cellgate.io/shaped"
"""What the Shaping document added to a pod, one line for each thing."""
PLACEMENT_ANNOTATION: Final = "cellgate.io/placement"
UNCHARGED_ANNOTATION: Final = "cellgate.io/uncharged"
"""On a gated pod whose quota is used up: it is charged before it is planned."""
OVER_QUOTA_ANNOTATION: Final = "cellgate.io/over-quota"
"""On a pod whose gang runs beyond the quotas of its group: the class that they keep from it."""
EFFECTIVE_CLASS_ANNOTATION: Final = "cellgate.io/effective-class"
"""The class of a pod's gang, where it is higher than the pod's own, which cannot change."""
ALONE_ANNOTATION: Final = "cellgate.io/charged-alone"
"""On a pod whose PodGroup is no gang: the pod is charged by itself."""
WORKLOAD_ANNOTATION: Final = "cellgate.io/workload"
"""The topmost controller of a pod: `kube.read.workloads` reads it."""
GANG_BY_ANNOTATION: Final = "cellgate.io/gang-by"
BY_LABELS: Final = "labels"
"""On a pod whose PodGroup is no gang: our labels say which gang it belongs to."""
QUARANTINE_ANNOTATION: Final = "cellgate.io/quarantine"
"""On a node that no gang may use: until when and why, or an admin's own words."""
NEVER_QUARANTINE: Final = "never"
"""The value with which an admin exempts a node from quarantine."""
LATE_ANNOTATION: Final = "cellgate.io/late-members"
"""How many members are created only after others are Ready: `kube.read.late_members` reads it."""
WOKEN_ANNOTATION: Final = "cellgate.io/woken"
"""When kube-scheduler was made to try a waiting pod again; has no other meaning."""
RELEASED_ANNOTATION: Final = "cellgate.io/released"
"""On a pod without leaf cells whose gate was lifted because its gang has its places. The value is
the version of the pod before that; it has no other meaning."""
RUN_TIME_ANNOTATION: Final = "cellgate.io/expected-run-time"
"""How long the owner of a pod expects it to run, such as `4h`."""
COST_ANNOTATION: Final = "cellgate.io/checkpoint-cost"
"""How much work is lost if a pod's gang is preempted, such as `10m`; by its owner."""
DEADLINE_ANNOTATION: Final = "cellgate.io/workload-deadline"
"""How many seconds after its start the workload of a pod is ended, its wait included."""
HOLD_ANNOTATION: Final = "cellgate.io/hold"
"""On a pod, its template or a new workload: why its gang is held, and perhaps until when."""
HELD_BY_ANNOTATION: Final = "cellgate.io/held-by"
"""Which user holds a gang, as what, and since when; the webhook writes it."""
HELD_SECONDS_ANNOTATION: Final = "cellgate.io/held-seconds"
"""For how long earlier holds of a pod have lasted; the webhook writes it."""
CANCEL_ANNOTATION: Final = "cellgate.io/cancel"
"""On a workload or a pod that its user is about to delete: why."""
START_BY_ANNOTATION: Final = "cellgate.io/start-by"
"""When the owner of a pod wishes its gang to start: a time with its time zone."""
SWAP_ANNOTATION: Final = "cellgate.io/swap-with"
"""On a pod: the gang with which its gang exchanges places in the queue."""
SWAPPED_BY_ANNOTATION: Final = "cellgate.io/swapped-by"
"""Which user asked for the swap, as what, when, and with which gang; the webhook writes it."""
PLACE_ANNOTATION: Final = "cellgate.io/swapped-place"
"""The place in the queue that a pod's gang keeps after a swap; the leader writes it."""
ALTERNATIVES_ANNOTATION: Final = "cellgate.io/alternatives"
"""On a pod, its template or a new workload: other forms in which its gang may run."""
ALTERNATIVE_ANNOTATION: Final = "cellgate.io/alternative"
"""On a pod that was placed by one of them: which one, and why; the extender writes it."""
ELASTIC_LABEL: Final = "cellgate.io/elastic"
"""On a Job that may start with several numbers of members; the webhook and the leader write it."""
RECLAIMED_MARK: Final = "cellgate.io/reclaimed"
"""On a workload that Cellgate suspended for another gang: an annotation and a label."""
EXTENDER_LEADERSHIP: Final = "cellgate-extender"
"""The Lease by which the extenders elect their leader."""
QUEUED_GATE: Final = "cellgate.io/queued"
SCHEDULER_NAME: Final = "cellgate-scheduler"

# Kubernetes.
DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"
DEFAULT_NAMESPACE: Final = "default"
JOB_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
"""On the pods of a Job."""
JOB_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
JOB_INDEX_LABEL: Final = "batch.kubernetes.io/job-completion-index"
DEFAULT_LEAF_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")
MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""On a mirror pod, by which a kubelet shows a static pod."""

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
"""A label, or an annotation of the same key if the name is too long for a label."""
KUEUE_COUNT_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-total-count"
KUEUE_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""On a workload that Kueue suspends and resumes."""
LWS_NAME_LABEL: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP_LABEL: Final = "leaderworkerset.sigs.k8s.io/group-index"
"""Of a LeaderWorkerSet: its name, and the index of the pod's group, which is a gang by itself."""
VOLCANO_ANNOTATION: Final = "scheduling.k8s.io/group-name"
VOLCANO_OWN_ANNOTATION: Final = "scheduling.volcano.sh/group-name"

PLACEMENT_ANNOTATIONS: Final = (
    PLACEMENT_ANNOTATION,
    HIVED_BIND_INFO_ANNOTATION,
    HIVED_ISOLATION_ANNOTATION,
)
"""The placement of a pod: ignored on a pod that is being created."""

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
"""Marks by which other projects name a pod's gang: fixed after admission."""


def is_ours(annotation: object) -> bool:
    """Whether only Cellgate may write an annotation on a managed pod."""
    ours = (HIVED_SPEC_ANNOTATION, *PLACEMENT_ANNOTATIONS)
    return isinstance(annotation, str) and (annotation.startswith(DOMAIN) or annotation in ours)
