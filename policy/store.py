"""The policy in force: all documents together, or the last ones that were good.

The shell hands over every policy text that exists, at each change; what comes back is always a
policy that can be applied. A document that is bad, or contradicts another, does not get in: the one
that was in force stays, while the others change. `problems` says why.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from policy.cluster.document import ClusterDocument
from policy.documents.contradictions import find_contradictions
from policy.documents.documents import Kind, ReadDocument, limit_problems, read_document
from policy.errors import Problem, SpecError
from policy.policy import Documents, Policy, Slot, build

__all__ = ["Policy", "PolicyStore", "PolicyText", "build_policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One document as it was found."""

    kind: Kind
    source: str
    """Where it was found (a ConfigMap, a file), as people call it."""
    text: str

    @property
    def slot(self) -> Slot:
        """Its place in a policy, which a newer version of it takes over."""
        return Slot(self.kind, self.source if self.kind.may_be_many else "")


def build_policy(texts: Iterable[PolicyText]) -> Policy:
    """Make a policy of exactly these texts. Raises SpecError with all problems, by source."""
    reading = _read(texts)
    problems = _problems(reading, None)
    if problems:
        raise SpecError(problems)
    return build(reading.documents)


class PolicyStore:
    """Holds the policy in force. Single writer."""

    def __init__(self) -> None:
        """Start without any document."""
        self._documents: Documents = {}
        self.policy = build({})
        self.problems: tuple[Problem, ...] = ()

    def update(
        self, texts: Iterable[PolicyText], *, cluster: ClusterDocument | None = None
    ) -> Policy:
        """Take all texts that exist now; return the policy that is in force from now on.

        Afterwards `problems` says what is wrong with the texts. `cluster` is for a caller that has
        read the cluster document itself, since a large one takes long: it is none of the texts.
        """
        reading = _read(texts)
        self.problems = tuple(_problems(reading, cluster))
        policy = _build(reading.documents, cluster)
        bad = (*reading.bad, *find_contradictions(reading.documents, policy))
        kept = {slot: self._documents[slot] for slot in bad if slot in self._documents}
        good = {slot: found for slot, found in reading.documents.items() if slot not in bad}
        self._enter({**good, **kept}, cluster)
        return self.policy

    def _enter(self, documents: Documents, cluster: ClusterDocument | None) -> None:
        """Put the documents in force, unless what was kept contradicts what is new."""
        ordered = {slot: documents[slot] for slot in sorted(documents)}
        policy = _build(ordered, cluster)
        if not find_contradictions(ordered, policy):
            self._documents, self.policy = ordered, policy


def _build(documents: Documents, cluster: ClusterDocument | None) -> Policy:
    policy = build(documents)
    return policy if cluster is None else replace(policy, cluster=cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Texts, as far as they could be read."""

    documents: Documents
    salvaged: Documents
    """What could be read of those that have problems."""
    sources: Mapping[Slot, str]
    bad: Sequence[Slot]
    problems: Sequence[Sequence[Problem]]


def _read(texts: Iterable[PolicyText]) -> _Reading:
    documents: Documents = {}
    salvaged: Documents = {}
    sources: dict[Slot, str] = {}
    bad: list[Slot] = []
    problems: list[list[Problem]] = []
    for found in sorted(texts, key=lambda text: (text.kind, text.source)):
        try:
            read = read_document(found.text, kind=found.kind)
            _check_only_one(found, sources)
        except SpecError as exc:
            read = ReadDocument(document=None, problems=exc.problems)
        if read.problems:
            bad.append(found.slot)
            problems.append([_in_source(found.source, problem) for problem in read.problems])
        if read.document is not None:
            (salvaged if read.problems else documents)[found.slot] = read.document
        sources.setdefault(found.slot, found.source)
    return _Reading(
        documents=documents, salvaged=salvaged, sources=sources, bad=bad, problems=problems
    )


def _check_only_one(found: PolicyText, sources: Mapping[Slot, str]) -> None:
    other = sources.get(found.slot)
    if other is not None:
        raise SpecError([Problem("", f"there is a {found.kind} document already, {other}")])


def _problems(reading: _Reading, cluster: ClusterDocument | None) -> list[Problem]:
    """Return all problems of all texts, those that they have with each other included."""
    readable = {**reading.salvaged, **reading.documents}
    documents = {slot: readable[slot] for slot in sorted(readable)}
    contradictions = find_contradictions(documents, _build(documents, cluster))
    if any(slot.kind is Kind.CLASSES and slot not in readable for slot in reading.bad):
        contradictions = {}  # nearly all are about classes, which nobody knows
    found = [
        [_in_source(reading.sources[slot], problem) for problem in problems]
        for slot, problems in contradictions.items()
    ]
    return limit_problems(_flat([*reading.problems, *found]))


def _flat(problems: Iterable[Iterable[Problem]]) -> list[Problem]:
    return [problem for some in problems for problem in some]


def _in_source(source: str, problem: Problem) -> Problem:
    path = f"{source}: {problem.path}" if source and problem.path else source or problem.path
    return Problem(path, problem.message)
