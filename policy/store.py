"""The policy in force: the last good version of each document.

At each change the store gets all policy texts that exist, and returns a policy that can be applied.
A document that has problems, or contradicts another, does not come into force: its last good
version stays, while the others change. `problems` says why.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from policy.classes import Classes
from policy.documents.identity_document import IdentityDocument
from policy.documents.queues_document import QueuesDocument
from policy.documents.quotas_document import QuotasDocument
from policy.documents.rule_checks import check_over, check_policy
from policy.documents.rules_document import RulesDocument
from policy.errors import Problem, SpecError
from policy.parser import DocumentKind, ReadDocument, limit_problems, read_document
from policy.policy import (
    DocumentKey,
    Documents,
    Policy,
    build,
    documents_of,
    without_expired,
)
from policy.queues.windows import promise_problems
from policy.wording import join_path, quote

_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One document as it was found."""

    kind: DocumentKind
    source: str
    """The ConfigMap or file it was found in, as named in messages."""
    text: str

    @property
    def key(self) -> DocumentKey:
        """Identifies the document among its versions."""
        return DocumentKey(self.kind, self.source if self.kind.may_be_many else "")


def build_policy(texts: Iterable[PolicyText]) -> Policy:
    """Build a policy of exactly these texts. Raises SpecError with all problems, by source."""
    reading = _read(texts)
    problems = list_problems(_problems(reading))
    if problems:
        raise SpecError(problems)
    return build(reading.documents)


def list_problems(by_source: Mapping[str, Iterable[Problem]]) -> list[Problem]:
    """List problems with the source in front of each path; a long list is cut."""
    return limit_problems(
        [_in_source(source, problem) for source, some in by_source.items() for problem in some]
    )


class PolicyStore:
    """Holds the policy in force. Single writer."""

    def __init__(self) -> None:
        """Start without any document."""
        self._documents: Documents = {}
        self._texts: Mapping[DocumentKey, str] = {}
        self.policy = build({})
        self.problems: Mapping[str, Sequence[Problem]] = {}
        """What is wrong with the texts that exist, by source."""

    def text(self, kind: DocumentKind) -> str | None:
        """The text of the document in force, of a kind of which there is only one."""
        return self._texts.get(DocumentKey(kind))

    def update(self, texts: Iterable[PolicyText], *, now: datetime = _EVER) -> Policy:
        """Take all texts that exist now; return the policy that is in force from now on.

        What has expired by `now` does not apply.
        Afterwards `problems` says what is wrong with the texts.
        """
        reading = _read(texts)
        self.problems = _problems(reading)
        contradictions = _find_contradictions(reading.documents, build(reading.documents))
        bad = (*reading.bad, *contradictions)
        kept = {key: self._documents[key] for key in bad if key in self._documents}
        good = {key: found for key, found in reading.documents.items() if key not in bad}
        kept_texts = {key: self._texts[key] for key in kept}
        documents = without_expired({**good, **kept}, now)
        self._enter(documents, texts={**reading.texts, **kept_texts})
        return self.policy

    def _enter(self, documents: Documents, *, texts: Mapping[DocumentKey, str]) -> None:
        """Put the documents in force, unless a kept version contradicts a new document.

        A Cluster document describes the hardware, so no other document prevents it.
        """
        in_force = build(documents := _sorted(documents))
        if _find_contradictions(documents, replace(in_force, cluster=None)):
            others = {key: one for key, one in self._documents.items() if not _is_cluster(key)}
            clusters = {key: one for key, one in documents.items() if _is_cluster(key)}
            documents = _sorted({**others, **clusters})
            if documents == self._documents:
                return
            texts = {**texts, **{key: self._texts[key] for key in others}}
            in_force = build(documents)
        self._documents, self.policy = documents, in_force
        self._texts = {key: texts[key] for key in documents}


def _sorted(documents: Documents) -> Documents:
    return {key: documents[key] for key in sorted(documents)}


def _is_cluster(key: DocumentKey) -> bool:
    return key.kind is DocumentKind.CLUSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The documents of all texts, as far as they could be read."""

    documents: Documents
    partial: Documents
    """The readable parts of documents that have problems."""
    found: Mapping[DocumentKey, PolicyText]
    bad: Sequence[DocumentKey]
    problems: Mapping[str, Sequence[Problem]]
    """By source."""

    @property
    def texts(self) -> dict[DocumentKey, str]:
        return {key: found.text for key, found in self.found.items()}


def _read(texts: Iterable[PolicyText]) -> _Reading:
    documents: Documents = {}
    partial: Documents = {}
    first: dict[DocumentKey, PolicyText] = {}
    bad: list[DocumentKey] = []
    problems: dict[str, list[Problem]] = {}
    for found in sorted(texts, key=lambda text: (text.kind, text.source)):
        try:
            read = read_document(found.text, kind=found.kind)
            _check_only_one(found, first)
        except SpecError as exc:
            read = ReadDocument(document=None, problems=exc.problems)
        if read.problems:
            bad.append(found.key)
            problems.setdefault(found.source, []).extend(read.problems)
        if read.document is not None:
            (partial if read.problems else documents)[found.key] = read.document
        first.setdefault(found.key, found)
    return _Reading(documents=documents, partial=partial, found=first, bad=bad, problems=problems)


def _check_only_one(found: PolicyText, first: Mapping[DocumentKey, PolicyText]) -> None:
    other = first.get(found.key)
    if other is not None:
        message = f"there is already a {found.kind} document, {other.source}"
        raise SpecError([Problem("", message)])


def _problems(reading: _Reading) -> dict[str, Sequence[Problem]]:
    """Return all problems of all texts by source, contradictions included."""
    readable = {**reading.partial, **reading.documents}
    documents = _sorted(readable)
    contradictions = _find_contradictions(documents, build(documents))
    if any(key.kind is DocumentKind.CLASSES and key not in readable for key in reading.bad):
        contradictions = {}  # nearly all are about classes, which are not known
    problems = dict(reading.problems)
    for key, found in contradictions.items():
        source = reading.found[key].source
        problems[source] = [*problems.get(source, ()), *found]
    return problems


def _in_source(source: str, problem: Problem) -> Problem:
    path = f"{source}: {problem.path}" if source and problem.path else source or problem.path
    return Problem(path, problem.message)


def _find_contradictions(documents: Documents, policy: Policy) -> dict[DocumentKey, list[Problem]]:
    """Return what documents say against each other, by the document that can correct it."""
    found: dict[DocumentKey, list[Problem]] = {}
    for key, problem in _contradictions(documents, policy):
        found.setdefault(key, []).append(problem)
    return found


def _contradictions(documents: Documents, policy: Policy) -> Iterator[tuple[DocumentKey, Problem]]:
    for key, _ in documents_of(documents, RulesDocument):
        for problem in check_policy(policy.classes, policy.rules):
            yield key, problem
    yield from _groups_given_twice(documents)
    for key, quotas in documents_of(documents, QuotasDocument):
        for problem in _over_problems(quotas, policy.classes):
            yield key, problem
    yield from _queue_contradictions(documents, policy)
    if policy.cluster is not None:
        for key, identity in documents_of(documents, IdentityDocument):
            for problem in identity.problems_with_vcs(policy.cluster.vc_names):
                yield key, problem


def _queue_contradictions(
    documents: Documents, policy: Policy
) -> Iterator[tuple[DocumentKey, Problem]]:
    """Yield unknown names, and reservations of more than a VC was promised.

    Where promises depend on nodes, only the webhook knows these.
    """
    cluster = policy.cluster
    vcs = frozenset(cluster.vc_names) if cluster else None
    capacity = cluster.capacity(()) if cluster and not cluster.depends_on_nodes else None
    for key, queues in documents_of(documents, QueuesDocument):
        for problem in queues.problems_with(classes=policy.classes.names, vcs=vcs):
            yield key, problem
        for problem in promise_problems(queues.build().reservations, capacity):
            yield key, problem


def _over_problems(quotas: QuotasDocument, classes: Classes) -> Iterator[Problem]:
    for place, group in enumerate(quotas.build()):
        problem = check_over(group, classes)
        if problem:
            yield Problem(join_path(("groups", place, "over")), problem)


def _groups_given_twice(documents: Documents) -> Iterator[tuple[DocumentKey, Problem]]:
    first: dict[str, DocumentKey] = {}
    for key, quotas in documents_of(documents, QuotasDocument):
        for place, group in enumerate(quotas.groups):
            other = first.setdefault(group.name, key)
            if other != key:
                message = f"group {quote(group.name)} already has quotas in {other.source}"
                yield key, Problem(join_path(("groups", place, "name")), message)
