"""Reviews of objects that hold pod templates: stamp the submitter, and say now what will happen.

Whoever creates a Job is its submitter; the pods come later, from a controller. So the submitter is
stamped on the template, and nobody may change the stamp afterwards: a pod would be charged to
somebody else. What a trusted controller makes of a template (a ReplicaSet of a Deployment, a Job of
a CronJob) carries the stamp already and is left alone; to change it would make the controller make
another one, for ever.

Of an update, the stamp of before stays: a missing one is put back, another one is refused. It is
believed only of a template that was managed before; others nobody has looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.follow.policies import PolicySink
from kube.read.leaf_demand import is_matched
from kube.values.objects import mapping
from policy.errors import Problem, RequestError
from policy.rules.decision import WARNING_CHARS, Outcome
from policy.wording import plain, quote
from webhook.admission.verdict import Verdict
from webhook.reviews.pod_group_reviews import PodGroupReviews, is_pod_group
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.submitter import check_stamp
from webhook.reviews.template_stamps import (
    MAX_TEMPLATES,
    Stamp,
    Template,
    find_templates,
    read_stamp,
    stamp_of,
    stamp_patch,
    to_pod,
)
from webhook.wire import ALLOWED, Answer, Operation, ReviewRequest, UserInfo

_LATER: Final = ("CronJob",)
"""What runs later, or again and again: usage of now says little about then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A managed template, and what it looked like before."""

    template: Template
    before: Template | None


class TemplateReviews:
    """Answers about Jobs, Deployments and all other kinds with pod templates."""

    def __init__(self, *, policies: PolicySink, pods: PodReviews, groups: PodGroupReviews) -> None:
        self._policies = policies
        self._pods = pods
        self._groups = groups

    async def mutate(self, review: ReviewRequest) -> Answer:
        """Stamp the pod templates of an object, and preview what its pods would get."""
        sender, identity = review.user, self._policies.policy.identity
        if review.object is None or review.operation not in ("CREATE", "UPDATE"):
            return ALLOWED
        if is_pod_group(review.object):
            return await self._groups.mutate(review, review.object)
        if identity.is_trusted(sender.username):
            return ALLOWED
        patch: list[Operation] = []
        warnings: list[str] = []
        try:
            for change in self._changes(review, review.object):
                stamp = _choose_stamp(change, sender)
                if stamp is not None:
                    patch += stamp_patch(change.template, stamp)
                    warnings += self._preview(review, change, stamp)
        except RequestError as exc:
            return Answer(is_allowed=False, message=str(exc))
        return Answer(is_allowed=True, patch=patch, warnings=list(dict.fromkeys(warnings)))

    def _changes(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Iterator[_Change]:
        """Yield the managed templates of an object. Raises RequestError if they are too many."""
        kinds = self._policies.policy.identity.find_templates(
            api_version=_text(obj, "apiVersion"), kind=_text(obj, "kind")
        )
        templates = find_templates(obj, kinds)
        if len(templates) > MAX_TEMPLATES:
            raise RequestError.at("", f"has more than {MAX_TEMPLATES} pod templates")
        olds = {old.pointer: old for old in find_templates(review.old_object or {}, kinds)}
        for template in templates:
            if self._is_managed(review, template):
                old = olds.get(template.pointer)
                is_known = old is not None and self._was_looked_at(review, old)
                yield _Change(template=template, before=old if is_known else None)

    def _is_managed(self, review: ReviewRequest, template: Template) -> bool:
        """Tell whether a template asks for leaf cells; one that makes no sense may mean to."""
        try:
            return self._pods.read_plain(review, to_pod(review, template, {})) is not None
        except RequestError:
            return True

    def _was_looked_at(self, review: ReviewRequest, old: Template) -> bool:
        """Tell whether the stamp on a template is ours: the API server asked us about it."""
        return is_matched(old.content["spec"]) and self._is_managed(review, old)

    def _preview(self, review: ReviewRequest, change: _Change, stamp: Stamp) -> Iterator[str]:
        """Yield what a pod of the template would be told; RequestError if it would be refused."""
        if stamp.user != review.user.username or change.template == change.before:
            return
        pod = to_pod(review, change.template, stamp.annotations)
        try:
            preview = self._pods.preview(review, pod)
        except RequestError as exc:
            raise _within(change.template, exc) from exc
        if preview is None:
            return
        verdict = preview.verdict
        if verdict.outcome is not Outcome.REFUSED:
            yield from (*verdict.format_warnings(), *preview.warnings)
        elif _is_for_now(review):
            raise RequestError.at(change.template.path, verdict.admission.format_refusal())
        else:
            yield _would_be_refused(verdict)


def _choose_stamp(change: _Change, sender: UserInfo) -> Stamp | None:
    """Say what must be stamped on a template; None leaves it alone. Raises RequestError."""
    path = change.template.annotation_path(marks.SUBMITTER_ANNOTATION)
    given = read_stamp(change.template)
    before = read_stamp(change.before) if change.before else Stamp(None, None)
    if before.user is None:
        if change.before is not None and change.template.content == change.before.content:
            return None  # older than we are, and not changed now
        check_stamp(given.user, sender, path=path)
        return stamp_of(sender)
    if given.user not in (None, before.user) or given.groups not in (None, before.groups):
        message = f"was {quote(before.user)} and cannot be changed"
        raise RequestError.at(path, message)
    return before


def _is_for_now(review: ReviewRequest) -> bool:
    """Tell whether pods come at once: only then is a refusal of now one of the object."""
    obj = review.object or {}
    is_suspended = mapping(obj.get("spec")).get("suspend") is True
    return review.operation == "CREATE" and obj.get("kind") not in _LATER and not is_suspended


def _would_be_refused(verdict: Verdict) -> str:
    refusal = verdict.admission.format_refusal()
    line = f"cellgate: as things are, its pods will be refused: {refusal}"
    return plain(line, limit=WARNING_CHARS)


def _within(template: Template, error: RequestError) -> RequestError:
    """Say that problems are those of a template."""
    return RequestError(
        [
            Problem(f"{template.path}.{one.path}" if one.path else template.path, one.message)
            for one in error.problems
        ]
    )


def _text(obj: Mapping[str, Any], key: str) -> str:
    value = obj.get(key)
    return value if isinstance(value, str) else ""
