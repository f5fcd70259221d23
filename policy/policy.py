"""`Policy`: what all documents together mean.

A document that does not exist has its default: no rules, no quotas, no shapes, every VC is open to
all users, no class is checked, and waiting gangs are ordered by class and age.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from policy.classes import NO_CLASSES, Classes
from policy.cluster.document import ClusterDocument
from policy.documents.billing_document import BillingDocument
from policy.documents.classes_document import ClassesDocument
from policy.documents.identity_document import IdentityDocument
from policy.documents.models import Document
from policy.documents.queues_document import QueuesDocument
from policy.documents.quotas_document import QuotasDocument
from policy.documents.rules_document import RulesDocument
from policy.documents.shaping_document import ShapingDocument
from policy.errors import Problem
from policy.identity.identity import Identity
from policy.parser import DocumentKind, restore_document
from policy.queues.queues import DEFAULT_QUEUES, Queues
from policy.queues.unknown_groups import find_unknown_groups
from policy.quotas.billing import with_billing
from policy.quotas.quota_table import QuotaTable
from policy.rules.never_matching import find_never_matching
from policy.rules.rule_table import NO_RULES, RuleTable
from policy.shaping import Shapes

VERSION_CHARS: Final = 12


class DocumentKey(NamedTuple):
    """Identifies a document of a policy: its kind, and its source if there may be several."""

    kind: DocumentKind
    source: str = ""


Documents = dict[DocumentKey, Document]
"""Sorted by key: this is the order in which groups are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything that decisions depend on."""

    version: str
    """Equal for documents with equal content, on every replica."""
    content: str = field(repr=False, compare=False)
    """The content of all documents as JSON; the version is its hash."""
    classes: Classes
    rules: RuleTable
    refuses_impossible: bool = False
    """Whether a workload that can never start is refused; otherwise its submitter is warned."""
    quotas: QuotaTable
    identity: Identity
    shapes: Shapes
    queues: Queues = DEFAULT_QUEUES
    next_expiry: datetime | None = None
    """When the first limit of a billing system ends."""
    cluster: ClusterDocument | None = None
    """The cells and VCs, if there is a Cluster document."""

    def rule_warnings(self) -> list[Problem]:
        """Return what is wrong with rules, and does no harm."""
        vcs = self.cluster.vc_names if self.cluster else None
        return list(find_never_matching(self.rules, vcs=vcs))

    def queue_warnings(self) -> list[Problem]:
        """Return what is wrong with the order of the queue, and does no harm."""
        groups = [group.name for group in self.quotas.groups]
        return list(find_unknown_groups(self.queues, groups=groups))


def build(documents: Documents) -> Policy:
    """Build the policy of documents that have been checked."""
    classes = _only(documents, ClassesDocument)
    rules = _only(documents, RulesDocument)
    quotas = documents_of(documents, QuotasDocument)
    shaping = _only(documents, ShapingDocument)
    billing = _only(documents, BillingDocument)
    queues = _only(documents, QueuesDocument)
    billed = billing.build() if billing else ()
    content = _content(documents)
    return Policy(
        version=hashlib.sha256(content.encode()).hexdigest()[:VERSION_CHARS],
        content=content,
        classes=classes.build() if classes else NO_CLASSES,
        rules=rules.build() if rules else NO_RULES,
        refuses_impossible=rules is not None and rules.impossible == "refuse",
        quotas=QuotaTable(
            with_billing((group for _, document in quotas for group in document.build()), billed)
        ),
        next_expiry=min((one.until for one in billed), default=None),
        identity=_build_identity(documents),
        shapes=shaping.build() if shaping else Shapes(),
        queues=queues.build() if queues else DEFAULT_QUEUES,
        cluster=_only(documents, ClusterDocument),
    )


def restore(content: str) -> Policy:
    """Build a policy from its `content`. Raises ValueError if this release cannot read it.

    Contradictions are not looked for: it was in force.
    """
    documents: Documents = {}
    read = json.loads(content)
    if not isinstance(read, dict):
        raise ValueError("the policy is no JSON object")
    for kind, found in read.items():
        several = found if DocumentKind(kind).may_be_many else [found]
        for place, data in enumerate(several):
            key = DocumentKey(DocumentKind(kind), f"{place:06}" if len(several) > 1 else "")
            documents[key] = restore_document(data, kind=key.kind)
    return build(documents)


def without_expired(documents: Documents, now: datetime) -> Documents:
    """Return the documents without limits of a billing system that have expired."""
    return {
        key: document.at(now) if isinstance(document, BillingDocument) else document
        for key, document in documents.items()
    }


def _build_identity(documents: Documents) -> Identity:
    cluster, identity = _only(documents, ClusterDocument), _only(documents, IdentityDocument)
    known_vcs = cluster.vc_names if cluster else None
    return identity.build(known_vcs) if identity else Identity(known_vcs=known_vcs)


DocumentT = TypeVar("DocumentT", bound=Document)


def documents_of(
    documents: Documents, model: type[DocumentT]
) -> Iterator[tuple[DocumentKey, DocumentT]]:
    """Yield the documents of one kind, in their order."""
    for key, document in documents.items():
        if isinstance(document, model):
            yield key, document


def _only(documents: Documents, model: type[DocumentT]) -> DocumentT | None:
    return next((document for _, document in documents_of(documents, model)), None)


def _content(documents: Documents) -> str:
    """Write the content of the documents, without their sources and formatting.

    Defaults are left out, so that a field that a later release adds does not change the version.
    """
    content: dict[str, object] = {}
    for key, document in documents.items():
        dumped = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        if key.kind.may_be_many:
            several = content.setdefault(key.kind, [])
            assert isinstance(several, list)
            several.append(dumped)
        else:
            content[key.kind] = dumped
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
