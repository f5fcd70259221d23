"""Apply shapes to a pod. Pure: pod and shapes in, patch, lines and warnings out.

Shaping a shaped pod changes nothing and lists the same lines again: a line of the pod's annotation
that is still true is kept, and any other text of the submitter there is dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from kube import marks
from kube.read.leaf_demand import MATCHED_RESOURCES
from kube.values.objects import Operation, items, mapping, marks_of
from policy.errors import Problem, RequestError
from policy.shaping import Mount, Shape
from policy.submission import UserName
from policy.wording import quote

VOLUME_PREFIX: Final = "cellgate-"
"""Starts the names of volumes that shapes add."""
FIXED: Final = ", fixed"
"""Ends the line of a field that only admins may change."""
_CONTAINERS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("requests", "limits")
_PLAIN_FIELDS: Final = (
    "nodeSelector",
    "tolerations",
    "imagePullSecrets",
    "volumes",
    "activeDeadlineSeconds",
)


@dataclass(frozen=True, slots=True)
class Shaped:
    """What shapes do to a pod."""

    patch: Sequence[Operation] = ()
    lines: Sequence[str] = ()
    """What the shapes set, in their order."""
    warnings: Sequence[str] = ()
    """What the submitter had specified differently."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotation that lists the lines."""
        return {marks.SHAPED_ANNOTATION: "\n".join(self.lines)} if self.lines else {}


def read_lines(pod: Mapping[str, Any]) -> list[str]:
    """Return the lines that a pod's annotation lists."""
    listed = marks_of(pod, "annotations").get(marks.SHAPED_ANNOTATION)
    return listed.split("\n") if isinstance(listed, str) else []


def shape_pod(pod: Mapping[str, Any], shapes: Sequence[Shape], *, user: UserName) -> Shaped:
    """Apply shapes to a pod. Raises RequestError if the pod contradicts them."""
    if not shapes:
        return Shaped()
    spec = _ShapedSpec(pod, user=user)
    for shape in shapes:
        spec.apply(shape)
    spec.check()
    return Shaped(spec.patch(), spec.lines, spec.warnings)


class _ShapedSpec:
    """A pod's spec while it is shaped. The first shape that sets a field wins."""

    def __init__(self, pod: Mapping[str, Any], *, user: UserName) -> None:
        self._before: Mapping[str, Any] = pod["spec"]
        self._spec = deepcopy(dict(self._before))
        self._user = user
        self._listed = frozenset(read_lines(pod))
        self._set: set[tuple[str, str]] = set()
        self._problems: list[Problem] = []
        self._shape = ""
        self.lines: list[str] = []
        self.warnings: list[str] = []

    def apply(self, shape: Shape) -> None:
        """Apply one shape."""
        self._shape = shape.name
        self._select_nodes(shape.node_selector)
        self._append("tolerations", shape.tolerations)
        self._append("imagePullSecrets", [{"name": name} for name in shape.image_pull_secrets])
        self._fix_requests(shape.fixed_requests)
        self._default_requests(shape.requests)
        for place, mount in enumerate(shape.mounts):
            self._mount(f"{VOLUME_PREFIX}{shape.name}-{place}", mount)
        if shape.max_run_seconds is not None:
            self._limit_run_time(shape.max_run_seconds)

    def check(self) -> None:
        """Raise RequestError with all contradictions."""
        if self._problems:
            raise RequestError(self._problems)

    def patch(self) -> list[Operation]:
        """Return the patch of all changed fields."""
        patch: list[Operation] = [
            {"op": "add", "path": f"/spec/{name}", "value": self._spec[name]}
            for name in _PLAIN_FIELDS
            if name in self._spec and self._spec[name] != self._before.get(name)
        ]
        patch += self._resources_patch()
        for name in _CONTAINERS:
            pairs = zip(items(self._before.get(name)), items(self._spec.get(name)), strict=True)
            patch += [
                {"op": "replace", "path": f"/spec/{name}/{place}", "value": new}
                for place, (old, new) in enumerate(pairs)
                if old != new
            ]
        return patch

    def _resources_patch(self) -> list[Operation]:
        left = self._spec.get("resources")
        if left == self._before.get("resources"):
            return []
        if not left:
            return [{"op": "remove", "path": "/spec/resources"}]
        return [{"op": "replace", "path": "/spec/resources", "value": left}]

    # -- one kind of field each

    def _select_nodes(self, wanted: Mapping[str, str]) -> None:
        for key, value in wanted.items():
            if not self._is_first("nodeSelector", key):
                continue
            selector = mapping(self._spec.get("nodeSelector"))
            if selector.get(key, value) != value:
                own = f"is {quote(str(selector[key]))}, but shape {self._shape}"
                message = f"{own} requires {quote(value)}; leave it out"
                self._problems.append(Problem(f"spec.nodeSelector[{key}]", message))
                continue
            self._note(f"nodeSelector {key}={value}", is_new=key not in selector)
            self._spec["nodeSelector"] = {**selector, key: value}

    def _append(self, name: str, wanted: Sequence[Mapping[str, Any]]) -> None:
        for one in wanted:
            present = items(self._spec.get(name))
            self._note(f"{name} {_show(one)}", is_new=one not in present)
            if one not in present:
                self._spec[name] = [*present, dict(one)]

    def _fix_requests(self, wanted: Mapping[str, str]) -> None:
        for resource, quantity in wanted.items():
            if not self._is_first("requests", resource):
                continue
            for container in self._containers_with_cells():
                self._fix_request(container, resource, quantity)
            self._drop_pod_request(resource)

    def _fix_request(self, container: dict[str, Any], resource: str, quantity: str) -> None:
        resources = mapping(container.get("resources"))
        requests, limits = mapping(resources.get("requests")), mapping(resources.get("limits"))
        own, fixed = limits.get(resource, requests.get(resource)), {resource: quantity}
        container["resources"] = {**resources, "requests": {**requests, **fixed}}
        if resource in limits:  # a limit must not be lower than the request
            container["resources"]["limits"] = {**limits, **fixed}
        is_new = container["resources"] != resources
        what = f"{resource} {quantity} for container {container.get('name')}"
        # Listed in any case: a later resize must not change it.
        self._note(f"{what}{FIXED}", is_new=True)
        if is_new and own not in (None, quantity):
            self._warn(f"{what} instead of the requested {own}")

    def _drop_pod_request(self, resource: str) -> None:
        """Remove the pod-level request: it would count instead of the containers' requests."""
        resources = mapping(self._spec.get("resources"))
        parts = {part: mapping(resources.get(part)) for part in _AMOUNTS}
        own = parts["limits"].get(resource, parts["requests"].get(resource))
        if own is None:
            return
        kept = {
            part: {name: amount for name, amount in amounts.items() if name != resource}
            for part, amounts in parts.items()
        }
        rest = {key: value for key, value in {**resources, **kept}.items() if value}
        self._spec["resources"] = rest
        self._warn(f"{resource} for each container instead of the requested {own} for the pod")

    def _default_requests(self, wanted: Mapping[str, str]) -> None:
        shared = _amounts(self._spec)
        for resource, quantity in wanted.items():
            # Containers share a pod-level request, and must not request more.
            if not self._is_first("requests", resource) or resource in shared:
                continue
            for container in self._containers_with_cells():
                resources = mapping(container.get("resources"))
                requests = mapping(resources.get("requests"))
                is_new = resource not in _amounts(container)
                if is_new:
                    requests = {**requests, resource: quantity}
                    container["resources"] = {**resources, "requests": requests}
                if requests.get(resource) == quantity:
                    what = f"{resource} {quantity} for container {container.get('name')}"
                    self._note(what, is_new=is_new)

    def _mount(self, name: str, mount: Mount) -> None:
        if not self._is_first("mounts", mount.path):
            return
        wanted: dict[str, Any] = {"name": name, "mountPath": mount.path}
        if mount.sub_path:
            wanted["subPath"] = mount.sub_path_of(self._user)
        if mount.is_read_only:
            wanted["readOnly"] = True
        self._check_only_there(wanted)
        takers = [taker for taker in self._containers() if _may_mount(taker, wanted)]
        if not takers:
            return
        volume = {"name": name, **mount.source}
        others = [one for one in items(self._spec.get("volumes")) if one.get("name") != name]
        is_new = False
        for taker in takers:
            mounts = items(taker.get("volumeMounts"))
            if wanted not in mounts:
                taker["volumeMounts"] = [*mounts, wanted]
                is_new = True
        self._note(f"mount {mount.path} from {mount.origin}", is_new=is_new)
        self._spec["volumes"] = [*others, volume]

    def _check_only_there(self, wanted: Mapping[str, Any]) -> None:
        """With another mount, a container would see the parts of other users in the volume."""
        for container in self._containers():
            for one in items(container.get("volumeMounts")):
                if one.get("name") == wanted["name"] and one != wanted:
                    message = f"only shape {self._shape} may mount volume {wanted['name']}"
                    path = f"spec.containers[{container.get('name')}].volumeMounts"
                    self._problems.append(Problem(path, message))

    def _limit_run_time(self, seconds: int) -> None:
        own = self._spec.get("activeDeadlineSeconds")
        is_new = not isinstance(own, int) or own > seconds
        if is_new:
            self._spec["activeDeadlineSeconds"] = seconds
        if self._spec["activeDeadlineSeconds"] == seconds:
            self._note(f"activeDeadlineSeconds {seconds}", is_new=is_new)
        if is_new and own is not None and own == self._before.get("activeDeadlineSeconds"):
            self._warn(f"activeDeadlineSeconds {seconds} instead of the requested {own}")

    # -- helpers

    def _is_first(self, kind: str, key: str) -> bool:
        """Tell whether no shape has set a field before, and note that one does now."""
        is_first = (kind, key) not in self._set
        self._set.add((kind, key))
        return is_first

    def _note(self, what: str, *, is_new: bool) -> None:
        line = f"{self._shape}: {what}"
        if line not in self.lines and (is_new or line in self._listed):
            self.lines.append(line)

    def _warn(self, what: str) -> None:
        self.warnings.append(f"cellgate: shape {self._shape} sets {what}")

    def _containers(self) -> Iterator[dict[str, Any]]:
        for name in _CONTAINERS:
            yield from _dicts(self._spec.get(name))

    def _containers_with_cells(self) -> Iterator[dict[str, Any]]:
        for container in self._containers():
            if MATCHED_RESOURCES & _amounts(container).keys():
                yield container


def _amounts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requests and limits of a container, or of a pod."""
    resources = mapping(part.get("resources"))
    return {**mapping(resources.get("requests")), **mapping(resources.get("limits"))}


def _dicts(value: object) -> list[dict[str, Any]]:
    """Return the mappings of a list, for changes in place."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _may_mount(container: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a container mounts nothing else at the path."""
    mounts = items(container.get("volumeMounts"))
    return all(one == wanted or one.get("mountPath") != wanted["mountPath"] for one in mounts)


def _show(value: Mapping[str, Any]) -> str:
    """Write a small mapping on one line."""
    return " ".join(f"{key}={part}" for key, part in value.items())
