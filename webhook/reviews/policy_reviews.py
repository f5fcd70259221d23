"""Reviews of policy documents: refused at `kubectl apply`, with every problem and its path.

Two questions: would the policy make sense with this change, and may this user make it?
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kube.follow.policies import Object, PolicySink, is_policy, read_policy_text, source_of
from kube.follow.priority_classes import PrioritySink
from policy.documents.checks import check_priorities
from policy.documents.documents import LABEL, Kind, parse_document
from policy.documents.quotas import QuotasDocument
from policy.errors import BackendError, Problem, RequestError, SpecError
from policy.identity.ownership import Editor, check_other_change, check_quotas_change
from policy.policy import Policy
from policy.quotas.quotas import QuotaGroup
from state.ledger.ledger import Holding, Ledger
from webhook.wire import ALLOWED, Answer, ReviewRequest

DEFAULT_ADMINS = ("system:masters", "kubeadm:cluster-admins")
_LEDGER_SECONDS: Final = 1.0


class PolicyReviews:
    """Answers about ConfigMaps that hold policy documents."""

    def __init__(
        self,
        policies: PolicySink,
        *,
        priorities: PrioritySink,
        ledger: Ledger,
        admins: Sequence[str] = DEFAULT_ADMINS,
    ) -> None:
        """`admins` are the users and groups who may change every document."""
        self._policies = policies
        self._priorities = priorities
        self._ledger = ledger
        self._admins = tuple(admins)

    async def validate(self, request: ReviewRequest) -> Answer:
        """Refuse a change that would leave a policy that makes no sense, or is not theirs."""
        before, after = _policy_of(request.old_object), _policy_of(request.object)
        try:
            self._check_owner(request, before, after)
            if after is not None:
                self._check_values(after, self._policies.check(after))
            elif before is not None:
                # Deleted, or its label was taken away: the others must do without it.
                policy = self._policies.check_without(before)
                await self._check_idle(policy)
        except (RequestError, SpecError, BackendError) as exc:
            return Answer(is_allowed=False, message=str(exc))
        return ALLOWED

    def _check_values(self, config_map: Object, policy: Policy) -> None:
        """Refuse classes in another order than Kubernetes' own priorities."""
        problems = check_priorities(policy.classes, self._priorities.values)
        if problems:
            source = source_of(config_map)
            raise SpecError([Problem(f"{source}: {one.path}", one.message) for one in problems])

    async def _check_idle(self, policy: Policy) -> None:
        """Refuse to take the cells away under running gangs; BackendError if that is not known."""
        if policy.cluster is None and self._policies.policy.cluster is not None:
            gangs = sum(holding.gangs for holding in await self._holdings())
            if gangs:
                message = f"the Cluster document cannot be deleted while gangs run: {gangs} do"
                raise RequestError.at("", message)

    async def _holdings(self) -> Sequence[Holding]:
        """Ask the ledger, within the patience of the API server: it would let the deletion pass."""
        try:
            async with asyncio.timeout(_LEDGER_SECONDS):
                return await self._ledger.holdings()
        except TimeoutError as exc:
            raise BackendError("cannot tell whether gangs run: the ledger does not answer") from exc

    def _check_owner(
        self, request: ReviewRequest, before: Object | None, after: Object | None
    ) -> None:
        editor = Editor(user=request.user.username, groups=request.user.groups)
        if editor.is_any_of(self._admins):
            return
        in_force = self._policies.policy.quotas
        kinds = [_is_quotas(one) for one in (before, after) if one is not None]
        if not all(kinds):
            check_other_change(editor, in_force=in_force)
        old, new = _groups(before), _groups(after)
        if old is None:
            # What would be raised or removed cannot be told.
            message = (
                "the document that is there cannot be read: only an admin of policies may mend it"
            )
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


def _policy_of(obj: Object | None) -> Object | None:
    return obj if obj is not None and is_policy(obj) else None


def _is_quotas(config_map: Object) -> bool:
    return bool(config_map["metadata"]["labels"][LABEL] == Kind.QUOTAS.label)


def _groups(config_map: Object | None) -> tuple[QuotaGroup, ...] | None:
    """Return the groups of a Quotas document; None if it cannot be read, which is told later."""
    if config_map is None or not _is_quotas(config_map):
        return ()
    try:
        document = parse_document(read_policy_text(config_map).text, kind=Kind.QUOTAS)
    except SpecError:
        return None
    assert isinstance(document, QuotasDocument)
    return document.build()
