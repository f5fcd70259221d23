"""Reviews of objects that hold pod templates: stamp the submitter, and preview the decision.

The user who creates a Job is the submitter of its pods, but a controller creates those later. So
the submitter is stamped on the template, and the stamp cannot be changed: otherwise the pods would
be charged to another user. What a trusted controller makes of a template (a ReplicaSet of a
Deployment, a Job of a CronJob) carries the stamp already and is left alone; if it changed, the
controller would replace the object for ever.

On an update, the earlier stamp stays: a missing one is restored, another one is refused. An earlier
stamp is believed only if the template was managed before; otherwise we did not review it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kube import marks
from kube.admission.elastic_jobs import elastic_patch
from kube.admission.possibility import check_job, makes_all_members
from kube.admission.submitter import STAMP_PATH, check_stamp
from kube.follow.policies import PolicySink
from kube.lives.pod_holds import HOLD_PATH, hold_of_workload
from kube.lives.run_limits import (
    COST_PATH,
    ESTIMATE_PATH,
    LIMIT_FIELD,
    check_deadline_kept,
    stated_limit,
    template_marks,
)
from kube.lives.start_wishes import START_BY_PATH, start_by_of_workload
from kube.read.late_members import creates_unknown
from kube.read.leaf_demand import is_matched
from kube.values.objects import Operation, mapping
from policy.admission.gang_decision import PREFIX
from policy.errors import Problem, RequestError
from policy.rules.decision import WARNING_CHARS
from policy.wording import plain, quote
from webhook.reviews.pod_group_reviews import PodGroupReviews, is_pod_group
from webhook.reviews.pod_reviews import PodReviews
from webhook.reviews.pod_templates import (
    MAX_TEMPLATES,
    PodTemplate,
    Stamp,
    find_marks,
    find_templates,
    format_pointer,
    stamp_of,
)
from webhook.reviews.preemption_advice import PreemptionAdvice
from webhook.reviews.rollouts import check_rollout
from webhook.reviews.unknown_marks import warn_of_unknown
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse, UserInfo

_UNKNOWN_ORDER: Final = (
    PREFIX
    + "it is not known whether a {kind} creates all members of a gang at once; if it creates "
    f"some only after others are Ready, write their number in {marks.LATE_ANNOTATION}"
)
_LATER: Final = ("CronJob",)
"""Kinds whose pods start later, so that current usage says little about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A template, and its earlier version if we reviewed that.

    The earlier stamp of a template without leaf cells counts for shapes only, and stays.
    """

    template: PodTemplate
    before: PodTemplate | None
    is_managed: bool


class TemplateReviews:
    """Reviews Jobs, Deployments and all other kinds with pod templates."""

    def __init__(
        self,
        *,
        policies: PolicySink,
        pods: PodReviews,
        groups: PodGroupReviews,
        advice: PreemptionAdvice,
        admins: tuple[str, ...],
    ) -> None:
        """`admins` are the users and groups that may change everything."""
        self._policies = policies
        self._advice = advice
        self._pods = pods
        self._groups = groups
        self._admins = admins

    async def mutate(self, review: ReviewRequest) -> ReviewResponse:
        """Stamp the pod templates of an object, and preview what its pods would get.

        Raises RequestError if they would be refused now.
        """
        sender, identity = review.user, self._policies.policy.identity
        if review.object is None or review.operation not in ("CREATE", "UPDATE"):
            return ALLOWED
        await self._pods.settle_namespace(review.namespace)
        if is_pod_group(review.object):
            return await self._groups.mutate(review, review.object)
        if identity.is_trusted(sender.username):
            return ALLOWED
        patch: list[Operation] = []
        warnings: list[str] = []
        found = list(self._changes(review, review.object))
        changes = [change for change in found if change.is_managed]
        _check_elsewhere(review, [change.template for change in found])
        for change in found:
            if not change.is_managed and change.template.stamp.user is not None:
                # A forged one, or one with forged groups, would count for shapes.
                stamp = _choose_stamp(change, sender)
                patch += [] if stamp is None else change.template.stamp_patch(stamp)
        if review.operation == "CREATE":
            patch += elastic_patch(review.object)
            warnings += warn_of_unknown(review.object) if changes else ()
        if creates_unknown(review.object, [change.template.content for change in changes]):
            warnings.append(_UNKNOWN_ORDER.format(kind=review.object.get("kind")))
        for change in changes:
            stamp = _choose_stamp(change, sender)
            if stamp is not None:
                self._check_limit(review, change)
                told = _run_marks(review, change.template)
                preview = self._preview(review, change, {**told, **stamp.annotations})
                patch += [*change.template.stamp_patch(stamp, told), *preview.patch]
                patch += _lifted_limit(review, change.template)
                warnings += [*preview.warnings, *self._check_workload(review, change)]
        return ReviewResponse(is_allowed=True, patch=patch, warnings=list(dict.fromkeys(warnings)))

    async def shape(self, review: ReviewRequest) -> ReviewResponse:
        """Stamp templates of pods without leaf cells, in a namespace that opts in to shaping.

        Raises RequestError if a template contradicts its shapes, or names another submitter.
        """
        identity = self._policies.policy.identity
        is_change = review.object is not None and review.operation in ("CREATE", "UPDATE")
        if not is_change or identity.is_trusted(review.user.username):
            return ALLOWED
        patch: list[Operation] = []
        warnings: list[str] = []
        for change in self._changes(review, review.object or {}):
            stamp = None if change.is_managed else _choose_stamp(change, review.user)
            if stamp is not None:
                patch += change.template.stamp_patch(stamp)
                warnings += self._preview(review, change, stamp.annotations).warnings
        return ReviewResponse(is_allowed=True, patch=patch, warnings=list(dict.fromkeys(warnings)))

    def _changes(self, review: ReviewRequest, obj: Mapping[str, Any]) -> Iterator[_Change]:
        """Yield the templates of an object. Raises RequestError if they are too many."""
        kinds = self._policies.policy.identity.find_templates(
            api_version=_text(obj, "apiVersion"), kind=_text(obj, "kind")
        )
        templates = find_templates(obj, kinds)
        if len(templates) > MAX_TEMPLATES:
            raise RequestError.at("", f"has more than {MAX_TEMPLATES} pod templates")
        olds = {old.pointer: old for old in find_templates(review.old_object or {}, kinds)}
        for template in templates:
            is_managed = self._is_managed(review, template)
            old = olds.get(template.pointer)
            is_reviewed = old is not None and (not is_managed or self._was_reviewed(review, old))
            yield _Change(
                template=template, before=old if is_reviewed else None, is_managed=is_managed
            )

    def _is_managed(self, review: ReviewRequest, template: PodTemplate) -> bool:
        """Tell whether a template asks for leaf cells; an invalid one is taken to do so."""
        try:
            return self._pods.read_pod(review, template.to_pod(review, {})) is not None
        except RequestError:
            return True

    def _was_reviewed(self, review: ReviewRequest, old: PodTemplate) -> bool:
        """Tell whether the API server had a template reviewed, so that its stamp is ours."""
        return is_matched(old.content) and self._is_managed(review, old)

    def _preview(
        self, review: ReviewRequest, change: _Change, marked: Mapping[str, str]
    ) -> ReviewResponse:
        """Preview a pod of the template, with its annotations: what its workload gets, and is told.

        Raises RequestError if the pod would be refused, and is created now.
        """
        submitter = marked.get(marks.SUBMITTER_ANNOTATION)
        if submitter != review.user.username or change.template == change.before:
            return ALLOWED
        pod = change.template.to_pod(review, marked)
        try:
            is_new = review.operation == "CREATE"
            advise = partial(self._advice.of, review.object or {}, is_new=is_new)
            are_alike = makes_all_members(review.object or {})
            preview = self._pods.preview(review, pod, are_alike=are_alike, advise=advise)
        except RequestError as exc:
            raise _within(change.template, exc) from exc
        if preview.is_allowed:
            return preview
        if _starts_now(review):
            raise RequestError.at(change.template.path, preview.message)
        line = f"{PREFIX}with current usage, its pods would be refused: {preview.message}"
        return ReviewResponse(is_allowed=True, warnings=[plain(line, limit=WARNING_CHARS)])

    def _check_limit(self, review: ReviewRequest, change: _Change) -> None:
        """Raise RequestError if a workload is to run for longer than its pods state.

        Admins may let it. The pods of a CronJob are created later, and state what it says then.
        """
        obj, template, before = review.object or {}, change.template, change.before
        if before is None or obj.get("kind") in _LATER or review.user.is_any_of(self._admins):
            return
        try:
            check_deadline_kept(before.content, template.content, holder=template.holder(obj))
        except RequestError as exc:
            is_field = exc.problems[0].path == LIMIT_FIELD
            where = replace(template, pointer=template.pointer[:-1]) if is_field else template
            raise _within(where, exc) from exc

    def _check_workload(self, review: ReviewRequest, change: _Change) -> Iterator[str]:
        """Yield warnings about a workload that does not match the gang of its pods."""
        obj, before = review.object or {}, review.old_object or {}
        if obj.get("spec") == before.get("spec"):
            return
        pod = self._pods.read_pod(review, change.template.to_pod(review, {}))
        refuses = self._policies.policy.refuses_impossible
        gang = pod.gang if pod else None
        yield from check_job(obj, gang, refuses=refuses)
        yield from check_rollout(obj, gang, refuses=refuses)


def _run_marks(review: ReviewRequest, template: PodTemplate) -> dict[str, str]:
    """Return what a new object says about its pods, their run time and a hold of their gang.

    Later its template is fixed, except that of a CronJob.
    """
    obj = review.object or {}
    if review.operation != "CREATE":
        limit = stated_limit(template.holder(obj)) if obj.get("kind") in _LATER else None
        return {} if limit is None else {marks.DEADLINE_ANNOTATION: limit}
    try:
        told = template_marks(obj, template.content, holder=template.holder(obj))
        told |= hold_of_workload(obj, template.content)
        return told | start_by_of_workload(obj, template.content)
    except RequestError as exc:
        own = (ESTIMATE_PATH, COST_PATH, HOLD_PATH, START_BY_PATH)
        is_own = exc.problems[0].path in own
        raise exc if is_own else _within(template, exc) from exc


def _lifted_limit(review: ReviewRequest, template: PodTemplate) -> list[Operation]:
    """Return the patch of a CronJob that has no limit any more."""
    obj = review.object or {}
    is_lifted = obj.get("kind") in _LATER and stated_limit(template.holder(obj)) is None
    return template.unmark_patch([marks.DEADLINE_ANNOTATION]) if is_lifted else []


def _choose_stamp(change: _Change, sender: UserInfo) -> Stamp | None:
    """Return the stamp for a template; None leaves it as it is. Raises RequestError."""
    path, given = f"{change.template.path}.{STAMP_PATH}", change.template.stamp
    before = change.before.stamp if change.before else Stamp()
    if before.user is None:
        if change.before is not None and change.template.content == change.before.content:
            return None  # created before Cellgate was installed, and unchanged
        check_stamp(given.user, sender, path=path)
        return stamp_of(sender)
    if given.user not in (None, before.user) or given.groups not in (None, before.groups):
        raise RequestError.at(path, f"was {quote(before.user)} and cannot be changed")
    return before


def _check_elsewhere(review: ReviewRequest, known: Sequence[PodTemplate]) -> None:
    """Raise RequestError for another user's stamp where no known template is.

    A controller may make annotations of pods of it. What was there before, and is the same, stays.
    """
    own = stamp_of(review.user).annotations
    before = dict(find_marks(review.old_object, own))
    for pointer, value in find_marks(review.object, own):
        is_known = any(pointer[: len(one.pointer)] == one.pointer for one in known)
        if is_known or value == own[str(pointer[-1])] or value == before.get(pointer):
            continue
        path = f"{format_pointer(pointer[:-1])}[{pointer[-1]}]"
        message = (
            f"is {quote(str(value))}, but the request comes from {quote(review.user.username)}"
        )
        raise RequestError.at(path, f"{message}; leave the annotation out, Cellgate sets it")


def _starts_now(review: ReviewRequest) -> bool:
    """Tell whether pods are created at once: only then does a refusal apply to the object."""
    obj = review.object or {}
    is_suspended = mapping(obj.get("spec")).get("suspend") is True
    return review.operation == "CREATE" and obj.get("kind") not in _LATER and not is_suspended


def _within(template: PodTemplate, error: RequestError) -> RequestError:
    """Prefix the paths of problems with the path of their template."""
    return RequestError(
        [
            Problem(f"{template.path}.{one.path}" if one.path else template.path, one.message)
            for one in error.problems
        ]
    )


def _text(obj: Mapping[str, Any], key: str) -> str:
    value = obj.get(key)
    return value if isinstance(value, str) else ""
