"""What documents say against each other: each problem is told at the document that can mend it."""

from collections.abc import Iterator

from policy.classes import Classes
from policy.documents.checks import check_over, check_policy
from policy.documents.identity import IdentityDocument
from policy.documents.models import RulesDocument
from policy.documents.quotas import QuotasDocument
from policy.errors import Problem
from policy.policy import Documents, Policy, Slot, documents_of
from policy.wording import join_path, quote


def find_contradictions(documents: Documents, policy: Policy) -> dict[Slot, list[Problem]]:
    """Return all problems of a policy, by the document in which they are found."""
    found: dict[Slot, list[Problem]] = {}
    for slot, problem in _problems(documents, policy):
        found.setdefault(slot, []).append(problem)
    return found


def _problems(documents: Documents, policy: Policy) -> Iterator[tuple[Slot, Problem]]:
    for slot, _ in documents_of(documents, RulesDocument):
        for problem in check_policy(policy.classes, policy.rules):
            yield slot, problem
    yield from _groups_given_twice(documents)
    for slot, quotas in documents_of(documents, QuotasDocument):
        for problem in _over_problems(quotas, policy.classes):
            yield slot, problem
    if policy.cluster is not None:
        for slot, identity in documents_of(documents, IdentityDocument):
            for problem in identity.problems_with_vcs(policy.cluster.vc_names):
                yield slot, problem


def _over_problems(quotas: QuotasDocument, classes: Classes) -> Iterator[Problem]:
    for place, group in enumerate(quotas.build()):
        problem = check_over(group, classes)
        if problem:
            yield Problem(join_path(("groups", place, "over")), problem)


def _groups_given_twice(documents: Documents) -> Iterator[tuple[Slot, Problem]]:
    first: dict[str, Slot] = {}
    for slot, quotas in documents_of(documents, QuotasDocument):
        for place, group in enumerate(quotas.groups):
            other = first.setdefault(group.name, slot)
            if other != slot:
                message = f"{other.source} has quotas of group {quote(group.name)} already"
                yield slot, Problem(join_path(("groups", place, "name")), message)
