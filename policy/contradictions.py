"""Contradictions between documents, each reported at the document that can correct it."""

from collections.abc import Iterator

from policy.classes import Classes
from policy.documents.identity_document import IdentityDocument
from policy.documents.quotas_document import QuotasDocument
from policy.documents.rule_checks import check_over, check_policy
from policy.documents.rules_document import RulesDocument
from policy.errors import Problem
from policy.policy import DocumentKey, Documents, Policy, documents_of
from policy.wording import join_path, quote


def find_contradictions(documents: Documents, policy: Policy) -> dict[DocumentKey, list[Problem]]:
    """Return all problems of a policy, by the document in which they are found."""
    found: dict[DocumentKey, list[Problem]] = {}
    for key, problem in _problems(documents, policy):
        found.setdefault(key, []).append(problem)
    return found


def _problems(documents: Documents, policy: Policy) -> Iterator[tuple[DocumentKey, Problem]]:
    for key, _ in documents_of(documents, RulesDocument):
        for problem in check_policy(policy.classes, policy.rules):
            yield key, problem
    yield from _groups_given_twice(documents)
    for key, quotas in documents_of(documents, QuotasDocument):
        for problem in _over_problems(quotas, policy.classes):
            yield key, problem
    if policy.cluster is not None:
        for key, identity in documents_of(documents, IdentityDocument):
            for problem in identity.problems_with_vcs(policy.cluster.vc_names):
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
