"""Reviews of Bindings: who may bind a managed pod to a node.

Only the extender, and kube-schedulers that call it, bind managed pods. Any other user with the
right to bind could put a pod on devices of others, and write marks on it: a Binding's annotations
become those of its pod. A Binding does not say what its pod asks for, so the pod is read from the
API server. Fails open if that does not answer, so that other schedulers do not depend on us.
"""

from collections.abc import Collection
from typing import Final
from urllib.parse import quote

from kube import marks
from kube.api.client import KubeClient, KubeError, Object
from kube.read.leaf_demand import is_matched
from kube.values.objects import mapping, marks_of
from policy.errors import Problem, RequestError
from webhook.ledger_access.time_budget import within_budget
from webhook.wire import ALLOWED, ReviewRequest, ReviewResponse

_REFUSED: Final = (
    "asks for leaf cells, and only Cellgate and its kube-scheduler may bind it; an admin can allow "
    "other schedulers with --binders"
)


class BindingGuard:
    """Reviews Bindings."""

    def __init__(
        self, client: KubeClient, *, writers: Collection[str], binders: Collection[str]
    ) -> None:
        """`writers` may also write marks with a Binding; `binders` may only bind."""
        self._client = client
        self._writers = writers
        self._binders = binders

    async def validate(self, review: ReviewRequest) -> ReviewResponse:
        """Raise RequestError for Bindings of managed pods, and marks, by all other users."""
        if review.object is None or review.user.is_any_of(self._writers):
            return ALLOWED
        name = review.name or mapping(review.object.get("metadata")).get("name")
        _check_marks(review.object)
        if name and isinstance(name, str) and not review.user.is_any_of(self._binders):
            await self._check_pod(review.namespace, name)
        return ALLOWED

    async def _check_pod(self, namespace: str, name: str) -> None:
        """Raise RequestError if a pod is managed; the API server reports a missing one."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
        try:
            async with within_budget():
                pod = await self._client.request("GET", path, query={"resourceVersion": "0"})
        except TimeoutError as exc:
            raise KubeError(f"GET {path}: no answer in time") from exc
        except KubeError as exc:
            if exc.is_missing:
                return
            raise
        if is_matched(pod):
            raise RequestError.at("", f"pod {namespace}/{name} {_REFUSED}")


def _check_marks(binding: Object) -> None:
    found = sorted(key for key in marks_of(binding, "annotations") if marks.is_ours(key))
    if found:
        message = "only Cellgate may write it"
        raise RequestError([Problem(f"metadata.annotations[{key}]", message) for key in found])
