"""The policy in force: all documents together, or the last ones that were good.

The shell hands over every policy text that exists, at each change; what comes back is always a
policy that can be applied. A document that is bad, or contradicts another, does not get in: the one
that was in force stays, while the others change. `problems` says why.

A document that does not exist has its default: no rules; without classes, no class is checked.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policy.checks import check_policy
from policy.classes import NO_CLASSES, Classes
from policy.cluster.document import ClusterDocument
from policy.documents import Kind, limit_problems, parse_document
from policy.errors import Problem, SpecError
from policy.models import ClassesDocument, Document, RulesDocument
from policy.rules import NO_RULES, RuleTable

VERSION_CHARS: Final = 12

_Documents = Mapping[Kind, Document]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One document as it was found."""

    kind: Kind
    source: str
    """Where it was found (a ConfigMap, a file), as people call it."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What decisions are made by."""

    version: str
    """The same for documents that mean the same, on every replica."""
    classes: Classes
    rules: RuleTable
    cluster: ClusterDocument | None = None
    """The cells and VCs, if a document says so; what it builds may depend on the nodes."""


def build_policy(texts: Iterable[PolicyText]) -> Policy:
    """Make a policy of exactly these texts. Raises SpecError with all problems, by source."""
    reading = _read(texts)
    policy = _build(reading.documents)
    problems = [*reading.problems, *_contradictions(policy, reading.sources)]
    if problems:
        raise SpecError(limit_problems(problems))
    return policy


class PolicyStore:
    """Holds the policy in force. Single writer."""

    def __init__(self) -> None:
        """Start without any document."""
        self._documents: _Documents = {}
        self.policy = _build({})
        self.problems: tuple[Problem, ...] = ()

    def update(self, texts: Iterable[PolicyText]) -> Policy:
        """Take all texts that exist now; return the policy that is in force from now on.

        Afterwards `problems` says what is wrong with the texts.
        """
        reading = _read(texts)
        contradictions = _contradictions(_build(reading.documents), reading.sources)
        self.problems = tuple(limit_problems([*reading.problems, *contradictions]))
        bad = [*reading.bad, *([Kind.RULES] if contradictions else [])]
        kept = {kind: self._documents[kind] for kind in bad if kind in self._documents}
        good = {kind: found for kind, found in reading.documents.items() if kind not in bad}
        self._enter({**good, **kept})
        return self.policy

    def _enter(self, documents: _Documents) -> None:
        """Put the documents in force, unless what was kept contradicts what is new."""
        policy = _build(documents)
        if not check_policy(policy.classes, policy.rules):
            self._documents, self.policy = documents, policy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Texts, as far as they could be read."""

    documents: _Documents
    sources: Mapping[Kind, str]
    bad: Sequence[Kind]
    problems: Sequence[Problem]


def _read(texts: Iterable[PolicyText]) -> _Reading:
    documents: dict[Kind, Document] = {}
    sources: dict[Kind, str] = {}
    bad: list[Kind] = []
    problems: list[Problem] = []
    for found in sorted(texts, key=lambda text: (text.kind, text.source)):
        try:
            document = parse_document(found.text, kind=found.kind)
            _check_only_one(found, sources)
        except SpecError as exc:
            bad.append(found.kind)
            problems += [_in_source(found.source, problem) for problem in exc.problems]
        else:
            documents[found.kind] = document
        sources.setdefault(found.kind, found.source)
    return _Reading(documents=documents, sources=sources, bad=bad, problems=problems)


def _check_only_one(found: PolicyText, sources: Mapping[Kind, str]) -> None:
    other = sources.get(found.kind)
    if other is not None:
        raise SpecError([Problem("", f"there is a {found.kind} document already, {other}")])


def _contradictions(policy: Policy, sources: Mapping[Kind, str]) -> list[Problem]:
    source = sources.get(Kind.RULES, "")
    return [_in_source(source, problem) for problem in check_policy(policy.classes, policy.rules)]


def _in_source(source: str, problem: Problem) -> Problem:
    path = f"{source}: {problem.path}" if source and problem.path else source or problem.path
    return Problem(path, problem.message)


def _build(documents: _Documents) -> Policy:
    classes, rules = documents.get(Kind.CLASSES), documents.get(Kind.RULES)
    cluster = documents.get(Kind.CLUSTER)
    return Policy(
        version=_version(documents),
        classes=classes.build() if isinstance(classes, ClassesDocument) else NO_CLASSES,
        rules=rules.build() if isinstance(rules, RulesDocument) else NO_RULES,
        cluster=cluster if isinstance(cluster, ClusterDocument) else None,
    )


def _version(documents: _Documents) -> str:
    """Hash what the documents say, not how they are written.

    Defaults are left out, so that a field that a later release adds does not change the version.
    """
    content = {
        kind: document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for kind, document in documents.items()
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:VERSION_CHARS]
