"""Policy documents in files: as bare documents or in ConfigMap manifests, several in one file.

They are validated as the webhook validates them at `kubectl apply`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kube.follow.policies import is_policy, read_policy_text
from kube.marks import DEFAULT_LEAF_RESOURCES
from policy.documents.models import API_VERSION
from policy.documents.yaml_text import parse_yaml
from policy.documents.yaml_tree import Plain
from policy.errors import Problem, SpecError
from policy.parser import DocumentKind, limit_problems
from policy.policy import Policy
from policy.store import PolicyText, build_policy
from policy.wording import describe, listing

_LISTS: Final = ("List", "ConfigMapList")
# At the start of a line this begins a new document, even within a block of text.
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFiles:
    """The policy that files hold, and what is allowed in it, but probably a mistake."""

    policy: Policy
    warnings: tuple[Problem, ...]
    kinds: tuple[DocumentKind, ...]
    """The kinds of the documents that the files have, sorted."""
    texts: tuple[PolicyText, ...]
    """All documents of the policy."""


def build_from_files(
    files: Iterable[tuple[str, str]], *, base: Iterable[PolicyText] = ()
) -> CheckedFiles:
    """Build a policy from all documents in files, each given by name and text.

    Documents of `base` apply, too, unless the files have documents of the same kind. Raises
    SpecError with all problems.
    """
    problems: list[Problem] = []
    texts = [found for name, text in files for found in _read_file(name, text, problems)]
    kinds = tuple(sorted({found.kind for found in texts}))
    of_policy = (*(one for one in base if one.kind not in kinds), *texts)
    try:
        policy = build_policy(of_policy)
    except SpecError as exc:
        problems += exc.problems
    if problems:
        raise SpecError(limit_problems(problems))
    return CheckedFiles(
        policy=policy, warnings=tuple(_warnings(policy, texts)), kinds=kinds, texts=of_policy
    )


def _warnings(policy: Policy, texts: Sequence[PolicyText]) -> Iterator[Problem]:
    cluster = policy.cluster
    sources = [found.source for found in texts if found.kind is DocumentKind.CLUSTER]
    for warning in cluster.warnings_for(DEFAULT_LEAF_RESOURCES) if cluster and sources else ():
        yield _in_file(sources[0], warning)
    rules = [found.source for found in texts if found.kind is DocumentKind.RULES]
    for warning in policy.rule_warnings() if rules else ():
        yield _in_file(rules[0], warning)
    queues = [found.source for found in texts if found.kind is DocumentKind.QUEUES]
    for warning in policy.queue_warnings() if queues else ():
        yield _in_file(queues[0], warning)


def split_documents(text: str) -> Iterator[str]:
    """Yield the YAML documents of a text, padded so that line numbers stay the same."""
    starts = [0, *(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        yield "\n" * text.count("\n", 0, start) + text[start:end]


def _read_file(name: str, text: str, problems: list[Problem]) -> Iterator[PolicyText]:
    for part in split_documents(text):
        with _collect_problems(name, problems):
            for data in objects_of(parse_yaml(part)[0]):
                with _collect_problems(name, problems):
                    yield from _read_object(name, part, data)


@contextmanager
def _collect_problems(name: str, problems: list[Problem]) -> Iterator[None]:
    try:
        yield
    except SpecError as exc:
        problems += [_in_file(name, problem) for problem in exc.problems]


def objects_of(data: Plain) -> Iterator[dict[str, Plain]]:
    """Yield an object, or the objects of a list such as the output of `kubectl get -o yaml`."""
    if data is None:
        return
    if not isinstance(data, dict):
        raise SpecError([Problem("", f"expected a policy document, not {describe(data)}")])
    entries = data.get("items") if data.get("kind") in _LISTS else [data]
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and (entry is data or entry.get("kind") == "ConfigMap"):
            yield entry


def _read_object(name: str, part: str, data: dict[str, Plain]) -> Iterator[PolicyText]:
    if data.get("kind") == "ConfigMap":
        if is_policy(data):
            yield read_policy_text(data)
    elif kind := _kind_of(data):
        yield PolicyText(kind=kind, source=name, text=part)


def _kind_of(data: dict[str, Plain]) -> DocumentKind | None:
    """Return the kind of a bare document; None for other objects of Kubernetes."""
    for kind in DocumentKind:
        if data.get("kind") == kind:
            return kind
    if "physicalCluster" in data or "virtualClusters" in data:
        return DocumentKind.CLUSTER
    version = data.get("apiVersion")
    if isinstance(version, str) and version != API_VERSION:
        return None
    if "hivedscheduler" in data:
        message = "is OpenPAI's configuration; convert it: cellgate import hived FILE"
        raise SpecError([Problem("hivedscheduler", message)])
    known = listing(list(DocumentKind))
    raise SpecError([Problem("kind", f"must be one of {known}, not {describe(data.get('kind'))}")])


def _in_file(name: str, problem: Problem) -> Problem:
    return Problem(f"{name}: {problem.path}" if problem.path else name, problem.message)
