"""Texts that code takes apart: gangs, pods, addresses of cells, chains, seats. Pure.

Their structure stays as it is, so that the code reads the masked text as it read the first one.
"""

import re
from typing import Final

from cli.log.mask.fields import LeftOutError, Pass, list_of, name, object_of, text_of, tuple_of
from cli.log.mask.names import Kind, Word
from extender.cells.model import Seat
from extender.cluster import rows
from kube.marks import NEVER_QUARANTINE
from policy.admission.logged import GROUP_LABEL
from policy.cluster.derived_cells import UNLABELLED
from policy.queues.alternatives import AS_ASKED
from policy.submission import GangKey
from policy.topology import CellAddress, ChainName

_CHAIN_OF_ENTRY: Final = re.compile(r"(.+)#([0-9]{1,3})", re.DOTALL)
_CHAIN_OF_DOMAIN: Final = re.compile(r"(.+)@([^@]+)", re.DOTALL)
_IN_DOMAIN: Final = re.compile(r"(.+) in domain ([^ ]+)", re.DOTALL)
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_FORM: Final = re.compile(r"(alternative [0-9]+ of [0-9]+) \((.+)\)", re.DOTALL)
_SERVICE_ACCOUNT: Final = re.compile(r"(system:serviceaccount:)([^:]+):(.+)", re.DOTALL)
_SERVICE_GROUP: Final = re.compile(r"(system:serviceaccounts:)(.+)", re.DOTALL)
_RESOURCES: Final = ("", "cpu", "memory", "pods", "ephemeral-storage")
_RESOURCE_TEXT: Final = re.compile(
    r"hugepages-[0-9]+[KMG]i|host port [0-9]+(?:/[A-Z]+)?|distance to other pods"
)
_OPEN_CHAIN: Final = "nodes"
"""What the engine calls its chains where there is no Cluster document."""

uid: Final = name(Kind.UID)
vc: Final = name(Kind.VC)
class_name: Final = name(Kind.CLASS)
pinned: Final = name(Kind.PINNED)
window: Final = name(Kind.WINDOW)
sentence: Final = name(Kind.TEXT)
key: Final = name(Kind.PLACE, Word.KEY)
label_value: Final = name(Kind.PLACE)
domain: Final = name(Kind.PLACE, Word.DOMAIN)
namespace: Final = name(Kind.NAMESPACE)


def node(value: object, now: Pass, where: str) -> str:
    """Mask the name of a node; HiveD's configuration may leave it out, and then counts."""
    text = text_of(value, where)
    if now.has_listed_cells and _NUMBER.fullmatch(text):
        return text
    return now.names.of(Kind.PLACE, text, Word.NODE)


def user(value: object, now: Pass, where: str) -> str | None:
    """Mask a user; what Kubernetes puts before the names of service accounts stays."""
    if value is None:
        return None
    text = text_of(value, where)
    if found := _SERVICE_ACCOUNT.fullmatch(text):
        in_namespace = now.names.of(Kind.NAMESPACE, found[2])
        return f"{found[1]}{in_namespace}:{now.names.of(Kind.USER, found[3])}"
    return now.names.of(Kind.USER, text)


def group(value: object, now: Pass, where: str) -> str | None:
    """Mask a group; those that Kubernetes gives to all users and service accounts stay."""
    if value is None:
        return None
    text = text_of(value, where)
    if text in ("system:authenticated", "system:serviceaccounts", "system:masters"):
        return text
    if found := _SERVICE_GROUP.fullmatch(text):
        return f"{found[1]}{now.names.of(Kind.NAMESPACE, found[2])}"
    return now.names.of(Kind.GROUP, text)


def gang_text(value: object, now: Pass, where: str) -> str:
    """Mask `namespace/name` of a gang."""
    return _in_namespace(text_of(value, where), now, Kind.GANG)


def resource(value: object, now: Pass, where: str) -> str:
    """Mask the name of a resource, unless Kubernetes defines it."""
    text = text_of(value, where)
    if text in _RESOURCES or _RESOURCE_TEXT.fullmatch(text):
        return text
    return now.names.of(Kind.PLACE, text, Word.KEY)


def pod_text(value: object, now: Pass, where: str) -> str:
    """Mask `namespace/name` of a pod."""
    return _in_namespace(text_of(value, where), now, Kind.POD)


def object_text(value: object, now: Pass, where: str) -> str:
    """Mask `namespace/name` of any other object."""
    return _in_namespace(text_of(value, where), now, Kind.OBJECT)


def _in_namespace(text: str, now: Pass, kind: Kind) -> str:
    first, slash, rest = text.partition("/")
    if not slash:
        return now.names.of(kind, text)
    masked = now.names.of(kind if first else Kind.WINDOW, rest)
    return f"{now.names.of(Kind.NAMESPACE, first)}/{masked}"


def pod_labels(value: object, now: Pass, where: str) -> dict[str, str]:
    """Mask the labels of a pod; the one of the group to charge is compared with groups."""
    found: dict[str, str] = {}
    for key_text, one in object_of(value, where).items():
        if key_text == GROUP_LABEL:
            found[key_text] = group(one, now, where) or ""
        else:
            label = now.names.of(Kind.LABEL, text_of(key_text, where))
            found[label] = now.names.of(Kind.LABEL, text_of(one, where))
    return found


def gang_list(value: object, now: Pass, where: str) -> list[object]:
    """Mask a gang as `encode_gang` writes it; without a namespace, it is an entry of a document."""
    namespace_text, *_ = entries = list_of(value, where)
    return list((_gang_entries if namespace_text else _entry)(entries, now, where))


_gang_entries: Final = tuple_of(namespace, name(Kind.GANG), uid)
_entry: Final = tuple_of(namespace, window, uid)


def stored_gang(value: object, now: Pass, where: str) -> str:
    """Mask the name and owner of a gang in one text, as the ledger stores them."""
    found = GangKey.from_stored("", text_of(value, where))
    owner = now.names.of(Kind.UID, found.owner) if found.owner else ""
    return GangKey("", now.names.of(Kind.GANG, found.name), owner).stored_name


def type_name(value: object, now: Pass, where: str) -> str | None:
    """Mask a leaf type, or a type of cells in HiveD's configuration."""
    return None if value is None else _type(text_of(value, where), now, Word.TYPE)


def cell_type(value: object, now: Pass, where: str) -> str | None:
    """Mask the type of a cell: a leaf type, a type of HiveD's, or the label of a level."""
    return None if value is None else _type(text_of(value, where), now, Word.VALUE)


def _type(text: str, now: Pass, word: Word) -> str:
    if found := _CHAIN_OF_ENTRY.fullmatch(text):
        return f"{now.names.of(Kind.PLACE, found[1], Word.TYPE)}#{found[2]}"
    if found := _CHAIN_OF_DOMAIN.fullmatch(text):
        base = now.names.of(Kind.PLACE, found[1], Word.TYPE)
        return f"{base}@{now.names.of(Kind.PLACE, found[2], Word.DOMAIN)}"
    return now.names.of(Kind.PLACE, text, word)


def type_text(value: object, now: Pass, where: str) -> str:
    """Mask a leaf type as sentences name it: with its domain."""
    text = text_of(value, where)
    if found := _IN_DOMAIN.fullmatch(text):
        in_domain = now.names.of(Kind.PLACE, found[2], Word.DOMAIN)
        return f"{_type(found[1], now, Word.TYPE)} in domain {in_domain}"
    return _type(text, now, Word.TYPE)


def dotted_type(value: object, now: Pass, where: str) -> str:
    """Mask HiveD's `chain.….type`."""
    return ".".join(_type(part, now, Word.TYPE) for part in text_of(value, where).split("."))


def chain(value: object, now: Pass, where: str) -> str | None:
    """Mask the name of a chain."""
    if value is None:
        return None
    text = text_of(value, where)
    if text == _OPEN_CHAIN:
        return text
    begin = f"{_OPEN_CHAIN} of "
    if text.startswith(begin):
        return begin + _type(text.removeprefix(begin), now, Word.TYPE)
    return _type(text, now, Word.TYPE)


def cell_part(value: object, now: Pass, where: str) -> str:
    """Mask one part of an address; where cells are listed, numbers are counted by the engine."""
    text = text_of(value, where)
    if text == UNLABELLED or (now.are_cells_listed and _NUMBER.fullmatch(text)):
        return text
    return now.names.of(Kind.PLACE, text, Word.CELL)


def vc_cell(value: object, now: Pass, where: str) -> str | None:
    """Mask the address of a preassigned cell: its VC, and its number there."""
    if value is None:
        return None
    name_of_vc, slash, number = text_of(value, where).rpartition("/")
    if not slash or not _NUMBER.fullmatch(number):
        raise LeftOutError(where)
    return f"{now.names.of(Kind.VC, name_of_vc)}/{number}"


def seat(value: object, now: Pass, where: str) -> list[str]:
    """Mask a seat as `encode_seat` writes it."""
    found = rows.decode_seat([text_of(one, where) for one in list_of(value, where)])
    depth = max((leaf.count("/") for leaf in found.leaves), default=-1)
    leaves = [_address(leaf, now, where, is_leaf=True) for leaf in found.leaves]
    claim = found.claim
    if claim is not None:
        claim = _address(claim, now, where, is_leaf=claim.count("/") == depth)
    masked_chain = ChainName(chain(found.chain, now, where) or "")
    return rows.encode_seat(Seat(chain=masked_chain, leaves=tuple(leaves), claim=claim))


def _address(text: str, now: Pass, where: str, *, is_leaf: bool) -> CellAddress:
    parts = text.split("/")
    last = parts.pop() if is_leaf else None
    masked = [cell_part(part, now, where) for part in parts]
    if last is not None:
        masked.append(last if _NUMBER.fullmatch(last) else cell_part(last, now, where))
    return CellAddress("/".join(masked))


def form(value: object, now: Pass, where: str) -> str:
    """Mask in which form a gang was tried."""
    text = text_of(value, where)
    if text == AS_ASKED:
        return text
    found = _FORM.fullmatch(text)
    if found is None:
        return now.names.of(Kind.TEXT, text)
    return f"{found[1]} ({now.names.of(Kind.TEXT, found[2])})"


def quarantine(value: object, now: Pass, where: str) -> str | None:
    """Mask what the annotation of a quarantine says, but for the word that forbids one."""
    if value is None or value == NEVER_QUARANTINE:
        return value
    return now.names.of(Kind.TEXT, text_of(value, where))
