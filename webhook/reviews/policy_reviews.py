"""Reviews of policy documents: a bad one is refused at `kubectl apply` with all its problems.

Two checks: is the policy as a whole valid with this change, and may this user make it?
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from kube.follow.policies import Object, PolicySink, is_policy, read_policy_text, source_of
from kube.follow.priority_classes import PriorityClassSink
from kube.marks import DEFAULT_LEAF_RESOURCES
from policy.cluster.document import NodeCount
from policy.documents.billing_document import BillingDocument
from policy.documents.quotas_document import QuotasDocument
from policy.documents.rule_checks import check_priorities
from policy.errors import BackendError, Problem, RequestError, SpecError
from policy.identity.ownership import (
    Editor,
    check_billing_change,
    check_other_change,
    check_quotas_change,
)
from policy.parser import LABEL, DocumentKind, parse_document
from policy.policy import Policy
from policy.queues.windows import promise_problems
from policy.quotas.billing import BilledLimits, billing_problems, changed_groups
from policy.quotas.quota_table import QuotaGroup
from policy.wording import count_of
from state.ledger.ledger import Ledger
from state.nodes.node_facts import NodeFacts
from webhook.policy_effects.policy_effects import PolicyEffects
from webhook.records.limit_changes import LimitChanges
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_LEDGER_SECONDS: Final = 1.0
_MAX_WARNINGS: Final = 10
_NOT_COMPARED: Final = (
    "cellgate: the promises were not compared with the nodes, because the database does not answer"
)


class PolicyReviews:
    """Reviews ConfigMaps that hold policy documents."""

    def __init__(
        self,
        policies: PolicySink,
        *,
        priorities: PriorityClassSink,
        ledger: Ledger,
        nodes: NodeFacts,
        admins: Collection[str],
        changes: LimitChanges,
        effects: PolicyEffects | None = None,
    ) -> None:
        """`admins` are the users and groups that may change every document."""
        self._effects = effects
        self._changes = changes
        self._nodes = nodes
        self._policies = policies
        self._priorities = priorities
        self._ledger = ledger
        self._admins = admins

    async def validate(self, request: ReviewRequest) -> ReviewResponse:
        """Raise SpecError for an invalid policy, RequestError for what the user may not change."""
        before, after = _policy_of(request.old_object), _policy_of(request.object)
        self._check_owner(request, before, after)
        until = self._effects.end_of_answer() if self._effects and request.dry_run else None
        response = await self._check(before, after, tells_until=until)
        if (_is_billing(before) or _is_billing(after)) and not request.dry_run:
            about, old, new = after or before or {}, _billed(before) or (), _billed(after) or ()
            self._changes.record(about, old, new, editor=request.user.username)
        return response

    async def _check(
        self, before: Object | None, after: Object | None, *, tells_until: float | None
    ) -> ReviewResponse:
        """Raise SpecError or RequestError unless the policy is valid with the change.

        `tells_until` is how long a dry run waits to be told what the change would have decided.
        """
        if _is_billing(before) or _is_billing(after):
            self._check_billing(before, after)
        if after is not None:
            await self._policies.prepare(after)
            policy = self._policies.check(after)
            self._check_values(after, policy)
            response = await self._check_promises(after, policy)
            told = [*self._warn(after, policy), *await self._tell(policy, tells_until)]
            return replace(response, warnings=[*response.warnings, *told])
        elif before is not None:
            # Deleted, or its label was removed: the others must be valid without it.
            policy = self._policies.check_without(before)
            await self._check_idle(policy)
            told = await self._tell(policy, tells_until)
            return replace(ALLOWED, warnings=told) if told else ALLOWED
        return ALLOWED

    async def _tell(self, policy: Policy, until: float | None) -> list[str]:
        """Say what a policy would have changed over the last day."""
        if self._effects is None or until is None:
            return []
        return await self._effects.tell(self._policies.policy, policy, until=until)

    def _check_billing(self, before: Object | None, after: Object | None) -> None:
        """Refuse limits that no bounds allow."""
        old, new = _billed(before) or (), _billed(after)
        if new is None:
            return  # its problems are told with the whole policy
        table, now = self._policies.policy.quotas, self._changes.now()
        problems = list(billing_problems(old, new, table=table, now=now))
        if problems:
            source = source_of(after or {})
            raise SpecError([Problem(f"{source}: {one.path}", one.message) for one in problems])

    def _check_values(self, config_map: Object, policy: Policy) -> None:
        """Refuse classes that PriorityClasses order differently."""
        problems = check_priorities(policy.classes, self._priorities.values)
        if problems:
            source = source_of(config_map)
            raise SpecError([Problem(f"{source}: {one.path}", one.message) for one in problems])

    def _warn(self, config_map: Object, policy: Policy) -> list[str]:
        """Return warnings about what matches no gang: all of the document, and what is new."""
        before, label = self._policies.policy, _label(config_map)
        rules, queues = policy.rule_warnings(), policy.queue_warnings()
        known = [] if label == DocumentKind.RULES.label else before.rule_warnings()
        found = [one for one in rules if one not in known]
        known = [] if label == DocumentKind.QUEUES.label else before.queue_warnings()
        found += [one for one in queues if one not in known]
        told = [f"cellgate: {one}" for one in found]
        return [*told[:_MAX_WARNINGS], *_more(told)]

    async def _check_promises(self, config_map: Object, policy: Policy) -> ReviewResponse:
        """Refuse promises that this change raises beyond the nodes that were seen lately.

        If those are unknown, nothing is refused: the extender cuts what nodes do not back.
        """
        document, before = policy.cluster, self._policies.policy.cluster
        if document is None or document == before:
            return await self._check_reservations(config_map, policy)
        told = [f"cellgate: {one}" for one in document.warnings_for(DEFAULT_LEAF_RESOURCES)]
        warnings = [*told[:_MAX_WARNINGS], *_more(told)]
        counts: Sequence[NodeCount] | None = ()
        if document.depends_on_nodes:
            counts = await self._nodes.count(document.label_keys)
        if counts is None:
            return ReviewResponse(is_allowed=True, warnings=[_NOT_COMPARED, *warnings])
        problems = document.check_raised(before, counts)
        if problems:
            source = source_of(config_map)
            raise SpecError([Problem(f"{source}: {one.path}", one.message) for one in problems])
        return ReviewResponse(is_allowed=True, warnings=warnings) if warnings else ALLOWED

    async def _check_reservations(self, config_map: Object, policy: Policy) -> ReviewResponse:
        """Refuse advance reservations of more than a VC was promised, by the nodes that were seen.

        A change of promises is not refused for them: the hardware is what it is.
        """
        reservations, document = policy.queues.reservations, policy.cluster
        is_changed = reservations != self._policies.policy.queues.reservations
        if document is None or not document.depends_on_nodes or not reservations or not is_changed:
            return ALLOWED
        counts = await self._nodes.count(document.label_keys)
        if counts is None:
            return ReviewResponse(is_allowed=True, warnings=[_NOT_COMPARED])
        problems = list(promise_problems(reservations, document.capacity(counts)))
        if problems:
            source = source_of(config_map)
            raise SpecError([Problem(f"{source}: {one.path}", one.message) for one in problems])
        return ALLOWED

    async def _check_idle(self, policy: Policy) -> None:
        """Refuse to delete the Cluster document while gangs run, or if that is unknown."""
        if policy.cluster is not None or self._policies.policy.cluster is None:
            return
        try:
            # Before the API server times out and lets the deletion pass.
            async with asyncio.timeout(_LEDGER_SECONDS):
                gangs = sum(holding.gangs for holding in await self._ledger.holdings())
        except (BackendError, TimeoutError) as exc:
            message = "quota database unavailable: whether gangs run is unknown; try again"
            raise RequestError.at("", message) from exc
        if gangs:
            charged = f"{count_of(gangs, 'gang')} charged"
            message = f"the Cluster document cannot be deleted while gangs run ({charged})"
            raise RequestError.at("", message)

    def _check_owner(
        self, request: ReviewRequest, before: Object | None, after: Object | None
    ) -> None:
        editor = Editor(user=request.user.username, groups=request.user.groups)
        if editor.is_any_of(self._admins):
            return
        in_force = self._policies.policy.quotas
        labels = [_label(one) for one in (before, after) if one is not None]
        if DocumentKind.BILLING.label in labels:
            # Also if only one of the two is a Billing document: a label can be changed.
            changed = changed_groups(_billed(before) or (), _billed(after) or ())
            check_billing_change(editor, changed, in_force=in_force)
            if all(label == DocumentKind.BILLING.label for label in labels):
                return
        kinds = [label == DocumentKind.QUOTAS.label for label in labels]
        if not all(kinds):
            is_shaping = DocumentKind.SHAPING.label in labels
            check_other_change(editor, in_force=in_force, is_shaping=is_shaping)
        old, new = _groups(before), _groups(after)
        if old is None:
            # Whether the change raises or removes a limit is unknown.
            message = "the stored document cannot be parsed, so only a policy admin may change it"
            raise RequestError.at("", message)
        if any(kinds) and new is not None:
            identity = self._policies.policy.identity
            check_quotas_change(
                editor,
                before=old,
                after=new,
                in_force=in_force,
                groups_of=lambda user: identity.groups_of(user, ()),
            )


def _more(told: Sequence[str]) -> list[str]:
    rest = len(told) - _MAX_WARNINGS
    return [f"cellgate: {count_of(rest, 'more warning')}; see cellgate check"] if rest > 0 else []


def _policy_of(obj: Object | None) -> Object | None:
    return obj if obj is not None and is_policy(obj) else None


def _label(config_map: Object) -> object:
    return config_map["metadata"]["labels"][LABEL]


def _is_billing(config_map: Object | None) -> bool:
    return config_map is not None and _label(config_map) == DocumentKind.BILLING.label


def _billed(config_map: Object | None) -> tuple[BilledLimits, ...] | None:
    """Return the limits of a Billing document; None if it cannot be parsed."""
    if config_map is None or not _is_billing(config_map):
        return ()
    try:
        document = parse_document(read_policy_text(config_map).text, kind=DocumentKind.BILLING)
    except SpecError:
        return None
    assert isinstance(document, BillingDocument)
    return document.build()


def _groups(config_map: Object | None) -> tuple[QuotaGroup, ...] | None:
    """Return the groups of a Quotas document; None if it cannot be parsed."""
    if config_map is None or _label(config_map) != DocumentKind.QUOTAS.label:
        return ()
    try:
        document = parse_document(read_policy_text(config_map).text, kind=DocumentKind.QUOTAS)
    except SpecError:
        return None
    assert isinstance(document, QuotasDocument)
    return document.build()
