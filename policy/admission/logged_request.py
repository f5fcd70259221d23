"""What a pod asks for on behalf of its gang, as a row of the decision log has it. Pure.

`details` of a row names who asked for what, for people; `inputs` has the rest. What follows from
other values is left out, so that the row of a plain pod stays small.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, Protocol
from uuid import UUID

from policy.admission.charge_request import ChargeRequest, build_charge
from policy.policy import Policy
from policy.queues.alternatives import Alternative
from policy.quotas.charge import Charge, CpuAndMemory
from policy.submission import (
    ClassName,
    GangKey,
    GroupName,
    LeafType,
    Submission,
    UserName,
    VcName,
)

Row = dict[str, Any]

_OPTIONS: Final = {
    "fixedClass": "fixed_class",
    "highestClass": "highest_class",
    "mayGrow": "may_grow",
    "isGroup": "is_group",
    "isHelper": "is_helper",
}
"""Fields of the request that few pods have."""
_OF_CHARGE: Final = tuple(
    one.name for one in fields(Charge) if one.name not in ("decision", "gang", "class_name", "each")
)


class LoggedRow(Protocol):
    """A row of the decision log."""

    @property
    def subject(self) -> str:
        """Namespace and name of the gang."""

    @property
    def details(self) -> Mapping[str, Any]:
        """Who asked for what, and got what."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What else the decision depended on."""


def encode_request(request: ChargeRequest) -> Row:
    """Encode all of a request that is neither in the details of its row, nor in the policy."""
    submission, member = request.submission, request.member
    found: Row = {
        "groups": list(submission.groups),
        "leafType": submission.leaf_type,
        "labels": dict(submission.labels),
        "late": list(request.late),
        "alternatives": [[one.leaf_type, one.vc, one.min_members] for one in request.alternatives],
        "shapes": list(request.shapes),
        "cpuMillis": member.cpu_millis,
        "memoryBytes": member.memory_bytes,
        **{name: getattr(request, field) for name, field in _OPTIONS.items()},
    }
    row = {name: value for name, value in found.items() if value or value == ""}
    owner = {"owner": submission.gang.owner} if submission.gang.owner else {}
    return row | owner | _encode_sizes(request)


def _encode_sizes(request: ChargeRequest) -> Row:
    submission = request.submission
    size, own = submission.gang_size, request.own_leaf_count
    given = {
        "memberLeafCount": request.member_leaf_count,
        "isAlone": request.is_alone,
        "gangCpuMillis": submission.cpu_millis,
        "gangMemoryBytes": submission.memory_bytes,
    }
    usual = _usual_sizes(
        size, own, of_gang=submission.leaf_count, member=request.member, may_grow=request.may_grow
    )
    row = {name: value for name, value in given.items() if value != usual[name]}
    if size != 1:
        row["gangSize"] = size
    if own != submission.leaf_count // max(1, size):
        row["ownLeafCount"] = own
    return row


def _usual_sizes(size: int, own: int, *, of_gang: int, member: CpuAndMemory, may_grow: bool) -> Row:
    """Return what follows for a gang whose members are all like this one."""
    is_alone = size == 1 and not may_grow
    return {
        "memberLeafCount": None if is_alone else own,
        "isAlone": is_alone,
        "gangCpuMillis": member.cpu_millis * of_gang // max(1, own),
        "gangMemoryBytes": member.memory_bytes * of_gang // max(1, own),
    }


def decode_request(row: LoggedRow, policy: Policy) -> ChargeRequest:
    """Read the request of a row; `policy` is the one by which it is decided."""
    details, inputs = row.details, row.inputs
    namespace, _, name = row.subject.partition("/")
    leaf_count, size = details["leafCount"], inputs.get("gangSize", 1)
    own = inputs.get("ownLeafCount", leaf_count // max(1, size))
    member = CpuAndMemory(
        cpu_millis=inputs.get("cpuMillis", 0), memory_bytes=inputs.get("memoryBytes", 0)
    )
    may_grow = inputs.get("mayGrow", False)
    sizes = _usual_sizes(size, own, of_gang=leaf_count, member=member, may_grow=may_grow)
    sizes |= {name: inputs[name] for name in sizes if name in inputs}
    leaf_type = inputs.get("leafType")
    named = details["group"]
    return ChargeRequest(
        submission=Submission(
            user=UserName(details["user"]),
            groups=tuple(map(GroupName, inputs.get("groups", ()))),
            vc=VcName(details["vc"]),
            requested_class=ClassName(details["requestedClass"]),
            gang=GangKey(namespace, name, inputs.get("owner", "")),
            gang_size=size,
            leaf_count=leaf_count,
            cpu_millis=sizes["gangCpuMillis"],
            memory_bytes=sizes["gangMemoryBytes"],
            leaf_type=None if leaf_type is None else LeafType(leaf_type),
            labels=inputs.get("labels", {}),
        ),
        group=None if named is None else policy.quotas.group(GroupName(named)),
        decision=UUID(details["decision"]),
        policy=policy,
        is_alone=sizes["isAlone"],
        member_leaf_count=sizes["memberLeafCount"],
        member=member,
        own_leaf_count=own,
        late=tuple(inputs.get("late", ())),
        alternatives=tuple(map(_alternative, inputs.get("alternatives", ()))),
        shapes=tuple(inputs.get("shapes", ())),
        **{field: inputs[name] for name, field in _OPTIONS.items() if name in inputs},
    )


def _alternative(row: tuple[Any, Any, Any]) -> Alternative:
    leaf_type, vc, min_members = row
    return Alternative(leaf_type=leaf_type, vc=vc, min_members=min_members)


def encode_held(request: ChargeRequest, held: Charge) -> Row:
    """Encode the charge that a gang had, as far as this member would not be charged like that."""
    usual = build_charge(request, held.class_name)
    differs = {
        name: value for name in _OF_CHARGE if (value := getattr(held, name)) != getattr(usual, name)
    }
    each = None if held.each is None else [held.each.cpu_millis, held.each.memory_bytes]
    return {"class_name": held.class_name, "each": each, **differs}


def decode_held(request: ChargeRequest, row: Mapping[str, Any]) -> Charge:
    """Read the charge that a gang had."""
    usual = build_charge(request, ClassName(row["class_name"]))
    values = {name: row.get(name, getattr(usual, name)) for name in _OF_CHARGE}
    each = row["each"]
    return Charge(
        decision=request.decision,
        gang=request.submission.gang,
        class_name=usual.class_name,
        each=None if each is None else CpuAndMemory(cpu_millis=each[0], memory_bytes=each[1]),
        **values,
    )
