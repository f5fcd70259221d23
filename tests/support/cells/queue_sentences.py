"""The sentences about gangs that the planner holds, or that are being bound, by their makers."""

from collections.abc import Callable

from extender.cells.model import Decision, Reason, ReasonCode
from tests.support.cells import refused_requests as requests

QUEUE_SENTENCES: dict[Callable[[], Decision | Reason], tuple[ReasonCode, str]] = {
    requests.gathering: (
        ReasonCode.GATHERING,
        "gang ns/bert is incomplete; scheduled once all members exist (2 of 4 so far); check "
        "`cellgate.io/gang-size`",
    ),
    requests.gathering_a_minimum: (
        ReasonCode.GATHERING,
        "gang ns/bert is incomplete; scheduled once enough members exist (2 of 3 so far); check "
        "`cellgate.io/gang-min`",
    ),
    requests.held_at_binding: (
        ReasonCode.HELD_AT_BINDING,
        "gang ns/bert is held at binding; bound once 4 members have passed kube-scheduler's checks "
        "(2 so far)",
    ),
    requests.given_up_at_binding: (
        ReasonCode.BINDING_GIVEN_UP,
        "no member of gang ns/bert is bound now: kube-scheduler refuses the node of a member; "
        "planned again; `kubectl describe pod` shows what kube-scheduler says about each member",
    ),
    requests.too_large_for_its_vc: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 2 x 2 leaf cells, 4 in total; one gang can use at most 2 of VC a; "
        "starts once it is smaller or VC a is promised more cells",
    ),
    requests.too_large_for_a_cut_vc: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 2 x 2 leaf cells, 4 in total; one gang can use at most 2 of VC a; of "
        "the promise to VC a, the nodes back only 1 of 3 cells of level node and type gpu; starts "
        "once it is smaller or VC a is promised more cells, or once the nodes back all of the "
        "promise",
    ),
    requests.cut_vc_full: (
        ReasonCode.VC_FULL,
        "gang ns/bert needs 1 leaf cell in one cell of VC a; 0 of the 2 leaf "
        "cells promised to VC a are unused; of the promise to VC a, the nodes back only 1 of 3 "
        "cells of level node and type gpu; starts once other gangs of VC a have ended, or with a "
        "higher priority than theirs, or once the nodes back all of the promise",
    ),
    requests.too_large_for_the_cluster: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert needs 3 x 2 leaf cells of type A100, 6 in total; one gang can use at most 4 "
        "of the cluster; starts once it is smaller or nodes are added",
    ),
    requests.too_wide_for_a_cell: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member with 2 leaf cells; the largest cell of VC a within one node has "
        "1; starts once its members are smaller or larger cells are promised",
    ),
    requests.too_wide_for_a_node: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has a member with 3 leaf cells; the largest node has 2; starts once its "
        "members are smaller or larger nodes are added",
    ),
    requests.too_many_members: (
        ReasonCode.TOO_LARGE,
        "gang ns/bert has 10001 members; the limit is 10000; split it into several gangs",
    ),
    requests.search_ended: (
        ReasonCode.SEARCH_ENDED,
        "gang ns/bert needs 100 x 3 and 50 x 2 leaf cells; the search reached its step limit "
        "without finding a place, although one may exist; starts once more leaf cells are free; a "
        "smaller gang or equal members would need fewer steps",
    ),
    requests.unknown_vc: (
        ReasonCode.UNKNOWN_VC,
        "gang ns/bert asks for VC c, which does not exist; use one of a, b",
    ),
    requests.unknown_pinned_cell: (
        ReasonCode.UNKNOWN_PINNED_CELL,
        "gang ns/bert asks for pinned cell PIN, which VC a does not have; ask for no pinned cell: "
        "the VC has none",
    ),
    requests.unknown_leaf_type: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which the cluster does not have; "
        "use one of A100",
    ),
    requests.leaf_type_of_others: (
        ReasonCode.UNKNOWN_LEAF_TYPE,
        "gang ns/bert asks for leaf cells of type H100, which VC a does not have; use one of A100",
    ),
    requests.bad_priority: (
        ReasonCode.BAD_PRIORITY,
        "gang ns/bert asks for priority 1001; use a priority from -1 (opportunistic) to 1000",
    ),
    requests.opportunistic_pinned: (
        ReasonCode.OPPORTUNISTIC_PINNED,
        "gang ns/bert is opportunistic and asks for pinned cell PIN; use a guaranteed priority, or "
        "ask for no pinned cell",
    ),
    requests.bad_gang_min: (
        ReasonCode.BAD_GANG_MIN,
        "gang ns/bert has 2 members, but needs at least 3 to start; use a minimum from 1 to 2",
    ),
    requests.bad_leaf_count: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert has a member with 0 leaf cells; every member needs at least 1",
    ),
    requests.no_members: (
        ReasonCode.BAD_LEAF_COUNT,
        "gang ns/bert lists no members; list the leaf cells of every member",
    ),
    requests.not_listed: (
        ReasonCode.GANG_MISMATCH,
        "gang ns/bert lists members with 2 x 2 leaf cells; this pod asks for 1; list this pod's "
        "leaf cells among the gang's members",
    ),
    requests.other_vc_and_priority: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has VC b, priority 7, but the first member has VC a, priority 0; "
        "use the same values for all members, or another gang name for this one",
    ),
    requests.other_sizes: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has member sizes 2 x 2, but the first member has member sizes "
        "2 x 1; use the same values for all members, or another gang name for this one; if members "
        "differ in size, list all of them in HiveD's annotation",
    ),
    requests.other_wishes: (
        ReasonCode.GANG_MISMATCH,
        "a member of gang ns/bert has leaf type A100, pinned cell PIN, gang minimum 1, but the "
        "first member has leaf type any, pinned cell none, gang minimum none; use the same values "
        "for all members, or another gang name for this one",
    ),
    requests.pod_of_another_gang: (
        ReasonCode.GANG_MISMATCH,
        "the pod with UID other-0 asks for gang ns/bert, but is a member of gang ns/other; create "
        "another pod: a pod cannot change its gang",
    ),
    requests.over_quota: (
        ReasonCode.QUOTA,
        "gang ns/bert waits for quota of group vision; starts once the limits of the group, and of "
        "the user in it, have room for 16 more leaf cells",
    ),
    requests.over_quota_of_unknown_size: (
        ReasonCode.QUOTA,
        "gang ns/bert waits for quota of group vision; starts once the limits of the group, and of "
        "the user in it, have room for the gang",
    ),
    requests.other_gate: (
        ReasonCode.OTHER_GATE,
        "pod ns/bert-0 has a scheduling gate of another controller; scheduled once that controller "
        "has removed its gate",
    ),
    requests.no_pod_group: (
        ReasonCode.NO_POD_GROUP,
        "gang ns/bert has no PodGroup that gives its size; create the PodGroup, or correct its "
        "name in the pods",
    ),
    requests.no_scheduler: (
        ReasonCode.NO_SCHEDULER,
        "gang ns/bert names the scheduler mine, which has asked about no pod: it does not run, or "
        "does not use Cellgate's extender; create the pods without `schedulerName`, or start that "
        "scheduler",
    ),
    requests.held_by_its_owner: (
        ReasonCode.HELD_BY_USER,
        "its owner alice holds gang ns/bert: data is copied; released once the annotation "
        "`cellgate.io/hold` is removed from its pods; the owner, an admin of the owner's group or "
        "a policy admin may lift that",
    ),
    requests.held_by_an_admin: (
        ReasonCode.HELD_BY_ADMIN,
        "the group's admin carol holds gang ns/bert: maintenance; released once gang ns/gpt has "
        "ended, or once the annotation `cellgate.io/hold` is removed from its pods; an admin of "
        "the owner's group or a policy admin may lift that",
    ),
    requests.in_maintenance: (
        ReasonCode.MAINTENANCE,
        "gang ns/bert needs 2 x 8 leaf cells; node gpu-1, which it could use, is "
        "in maintenance window firmware from 2026-11-20T20:00:00Z until 2026-11-21T06:00:00Z; "
        "starts once that time is over or other leaf cells are free, or, before it begins, if it "
        "is expected to end in time: set a limit with `activeDeadlineSeconds`",
    ),
    requests.reserved_ahead: (
        ReasonCode.RESERVED_AHEAD,
        "gang ns/bert needs 2 x 8 leaf cells; the leaf cells that it could use "
        "are reserved for other gangs from 2026-11-20T20:00:00Z until 2026-11-21T06:00:00Z by the "
        "advance reservation firmware; starts once that time is over or other leaf cells are "
        "free, or, before it begins, if it is expected to end in time: set a limit with "
        "`activeDeadlineSeconds`",
    ),
    requests.unknown_class: (
        ReasonCode.UNKNOWN_CLASS,
        "gang ns/bert is not valid: class x is not in the document; add the class to the document, "
        "or create the pods again with another class",
    ),
}
